// Runs models with ONNX Runtime, for recorded_test.go.
//
//   node record.js ORT_DIR WORK_DIR
//
// ORT_DIR has node_modules/onnxruntime-node. WORK_DIR has for each case N the files N.onnx, N.json (the inputs:
// [{name, dtype, shape}]) and N.name.bin (raw little-endian values); N.out.json gets the outputs in the model's order,
// with values in base64, or {error}.
const fs = require('fs');
const path = require('path');

const [ortDir, dir] = process.argv.slice(2);
const ort = require(path.resolve(ortDir, 'node_modules', 'onnxruntime-node'));

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array,
};

async function run(stem) {
  const feeds = {};
  for (const { name, dtype, shape } of JSON.parse(fs.readFileSync(`${stem}.json`))) {
    const bytes = fs.readFileSync(`${stem}.${name}.bin`);
    const aligned = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    feeds[name] = new ort.Tensor(dtype, new arrays[dtype](aligned), shape);
  }
  const session = await ort.InferenceSession.create(`${stem}.onnx`, { intraOpNumThreads: 1, logSeverityLevel: 3 });
  const results = await session.run(feeds);
  return session.outputNames.map((name) => {
    const { type, dims, data } = results[name];
    const values = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
    return { dtype: type, shape: dims.map(Number), values };
  });
}

async function main() {
  for (const file of fs.readdirSync(dir).filter((f) => f.endsWith('.onnx'))) {
    const stem = path.join(dir, file.slice(0, -'.onnx'.length));
    const answer = await run(stem).catch((e) => ({ error: String(e.message || e).split('\n')[0] }));
    fs.writeFileSync(`${stem}.out.json`, JSON.stringify(answer));
  }
}

main();
