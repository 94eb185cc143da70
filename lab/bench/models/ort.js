// Serves ONNX Runtime over standard input and output; see contender.go for the requests.
//
//   node ort.js ORT_DIR MODEL.onnx THREADS INPUTS.json
const fs = require('fs');
const path = require('path');
const readline = require('readline');

const [ortDir, modelFile, threads, specFile] = process.argv.slice(2);
const ort = require(path.resolve(ortDir, 'node_modules', 'onnxruntime-node'));

const arrays = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array,
};

function tensor(spec) {
  const bytes = fs.readFileSync(spec.file);
  const aligned = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  return new ort.Tensor(spec.dtype, new arrays[spec.dtype](aligned), spec.shape);
}

function peakMemory() {
  return 1024 * +/VmHWM:\s*(\d+)/.exec(fs.readFileSync('/proc/self/status', 'latin1'))[1];
}

async function main() {
  const feeds = {};
  for (const spec of JSON.parse(fs.readFileSync(specFile))) feeds[spec.name] = tensor(spec);
  const before = peakMemory();
  const options = { intraOpNumThreads: +threads, interOpNumThreads: 1, graphOptimizationLevel: 'all' };
  const session = await ort.InferenceSession.create(modelFile, options);
  let last = await session.run(feeds);

  const answers = {
    run: async (count) => {
      await session.run(feeds);
      const times = [];
      for (let k = 0; k < +count; k++) {
        const began = process.hrtime.bigint();
        last = await session.run(feeds);
        times.push(Number(process.hrtime.bigint() - began) / 1e6);
      }
      return times;
    },
    outputs: async (dir) => Object.entries(last).map(([name, value], k) => {
      const file = path.join(dir, `peer${k}`);
      fs.writeFileSync(file, Buffer.from(value.data.buffer, value.data.byteOffset, value.data.byteLength));
      return { name, dtype: value.type, shape: value.dims.map(Number), file };
    }),
    memory: async () => ({ Peak: peakMemory(), Before: before }),
  };

  console.log('ready');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, argument] = line.split(' ');
    console.log(JSON.stringify(await answers[command](argument)));
  }
}

main().catch((e) => { console.error(String(e.message || e)); process.exit(1); });
