package evaluate

import "github.com/tilth-dev/tilth/compiler/array"

// Strided is the memory of a tensor: element i is at offset sum(i[k]*Strides[k]) elements of Data.
type Strided struct {
	Data    []byte
	Strides []int64
}

// CopyStrided copies the elements of a tensor of the given type and shape from one place to another.
func CopyStrided(d array.DType, shape []int64, to, from Strided) {
	size := d.Bytes()
	index := make([]int64, len(shape))
	var t, f int64 // positions of the element at index
	for range array.Elements(shape) {
		copy(to.Data[t*size:(t+1)*size], from.Data[f*size:(f+1)*size])
		for k := len(shape) - 1; k >= 0; k-- {
			index[k]++
			t, f = t+to.Strides[k], f+from.Strides[k]
			if index[k] < shape[k] {
				break
			}
			t, f = t-shape[k]*to.Strides[k], f-shape[k]*from.Strides[k]
			index[k] = 0
		}
	}
}
