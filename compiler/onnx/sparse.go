package onnx

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// maxSparseBytes limits the dense tensors that a model's sparse ones become: an empty one may have any shape.
const maxSparseBytes = 256 << 20

// sparseTensor decodes a SparseTensorProto to a dense tensor.
func (r *reader) sparseTensor(data []byte) (*Tensor, error) {
	var values, indices *Tensor
	var shape rawTensor
	err := eachField(data, func(f field) (err error) {
		switch f.number {
		case 1:
			values, err = r.tensor(f.bytes)
		case 2:
			indices, err = r.tensor(f.bytes)
		case 3:
			err = shape.dim(f)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if values == nil {
		return nil, fmt.Errorf("sparse tensor has no values")
	}
	dense, err := r.dense(values.Value, indices, shape.dims)
	if err != nil {
		return nil, fmt.Errorf("sparse tensor %q: %w", values.Name, err)
	}
	return &Tensor{Name: values.Name, Value: dense}, nil
}

// dense returns a tensor with values at indices, either positions in the flattened tensor or a row of indices each,
// and zeros elsewhere.
func (r *reader) dense(values *array.Array, indices *Tensor, shape []int64) (*array.Array, error) {
	size, err := array.CheckedBytes(values.DType, shape)
	if err != nil {
		return nil, err
	}
	if r.sparse += size; r.sparse > maxSparseBytes {
		return nil, unsupportedf("sparse tensors are over the limit of %d bytes when they are dense: store them dense", maxSparseBytes)
	}
	out, n := array.New(values.DType, shape...), values.Len()
	if n == 0 {
		return out, nil
	}
	if indices == nil || indices.Value.DType != array.Int64 || indices.Value.Len() != n && indices.Value.Len() != n*int64(len(shape)) {
		return nil, fmt.Errorf("the indices do not fit %d values of a tensor of shape %v", n, shape)
	}
	step, width := indices.Value.Len()/n, values.DType.Bytes()
	for k := range n {
		at := int64(0)
		for axis := range step {
			i, extent := indices.Value.Int(k*step+axis), out.Len()
			if step == int64(len(shape)) {
				extent = shape[axis]
			}
			if i < 0 || i >= extent {
				return nil, fmt.Errorf("index %d is outside of 0..%d", i, extent-1)
			}
			at = at*extent + i
		}
		copy(out.Data[at*width:], values.Data[k*width:(k+1)*width])
	}
	return out, nil
}
