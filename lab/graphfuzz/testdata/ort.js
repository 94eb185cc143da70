// Runs models with ONNX Runtime: node ort.js DIR, where DIR has onnxruntime-node installed. Each line of standard input is
// {"model", "inputs": [{name, dtype, shape, file}], "dir"}; it is answered by a line {"outputs": [the same]} or {"error"}.
// Files have raw little-endian values in C order.
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const ort = require(path.resolve(process.argv[2], 'node_modules', 'onnxruntime-node'));

const arrays = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int32: Int32Array, int64: BigInt64Array, uint8: Uint8Array, bool: Uint8Array,
};

function read(t) {
  const bytes = fs.readFileSync(t.file);
  return new ort.Tensor(t.dtype, new arrays[t.dtype](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), t.shape);
}

// Models are computed as they are written. By itself ONNX Runtime rounds data to 8 bits for products with dequantised
// weights, and computes an Add between dequantisations and a quantisation as its own QLinearAdd, which rounds with the
// zero point in the sum: where that is odd, ties go the other way than ONNX says. The fusion of a transposition with a
// product stays off, too: in ONNX Runtime 1.30 it ends in a segmentation fault where a Cast between the two is an output
// of the graph as well.
const extra = {
  session: { qdq_matmulnbits_accuracy_level: '1', disable_quant_qdq: '1' },
  optimization: { disable_specified_optimizers: 'MatmulTransposeFusion;GatherToSliceFusion' },
};

async function answer(question) {
  const session = await ort.InferenceSession.create(question.model, { extra, intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4 });
  const feeds = {};
  for (const t of question.inputs) if (session.inputNames.includes(t.name)) feeds[t.name] = read(t);
  const results = await session.run(feeds);
  const outputs = Object.entries(results).map(([name, t]) => {
    const file = path.join(question.dir, `out_${name}`);
    fs.writeFileSync(file, Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength));
    return { name, dtype: t.type, shape: t.dims.map(Number), file };
  });
  await session.release();
  return { outputs };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let said;
    try {
      said = await answer(JSON.parse(line));
    } catch (e) {
      said = { error: String(e.message || e) };
    }
    console.log(JSON.stringify(said));
  }
}

main();
