package modelzoo

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
)

// uniform generates float32 elements in centre ± limit. A stream is determined by its seed and number.
type uniform struct {
	seed, stream  uint64
	centre, limit float64
	elements      int64
}

// weights returns a new parameter, uniform in centre ± limit.
func (b *builder) weights(name string, centre, limit float64, shape ...int64) string {
	b.parameters += array.Elements(shape)
	return b.made(name, centre, limit, shape...)
}

// statistics returns values that training measures rather than learns, uniform in centre ± limit.
func (b *builder) statistics(name string, centre, limit float64, shape ...int64) string {
	return b.made(name, centre, limit, shape...)
}

func (b *builder) made(name string, centre, limit float64, shape ...int64) string {
	name = b.constant(name, &array.Array{DType: array.Float32, Shape: shape})
	last := len(b.sources) - 1
	source := &uniform{seed: b.seed, stream: uint64(last), centre: centre, limit: limit, elements: array.Elements(shape)}
	b.sources[last] = source
	b.graph.Initializers[last].Content = source.write
	return name
}

// materialise generates the elements of all weights in memory.
func (b *builder) materialise() {
	for k, source := range b.sources {
		if t := b.graph.Initializers[k]; source != nil {
			t.Content, t.Value.Data = nil, make([]byte, 4*source.elements)
			source.fill(source.generator(), t.Value.Data)
		}
	}
}

func (u *uniform) generator() *rand.PCG { return rand.NewPCG(u.seed, u.stream<<20|0x7469_6c74_68) }

// fill takes two elements from each random number. The generator and the data are not shared. The race detector is
// disabled, since it would dominate the time of tests that build models.
//
//go:norace
func (u *uniform) fill(random *rand.PCG, data []byte) {
	scale := u.limit / (1 << 31)
	for at := 0; at < len(data); at += 8 {
		r := random.Uint64()
		binary.LittleEndian.PutUint32(data[at:], bits(u.centre+float64(int32(r))*scale))
		if at+4 < len(data) {
			binary.LittleEndian.PutUint32(data[at+4:], bits(u.centre+float64(int32(r>>32))*scale))
		}
	}
}

func bits(v float64) uint32 { return math.Float32bits(float32(v)) }

// write generates the elements block by block.
func (u *uniform) write(w io.Writer) error {
	random := u.generator()
	block := make([]byte, min(4*u.elements, 1<<18))
	for left := 4 * u.elements; left > 0; left -= int64(len(block)) {
		block = block[:min(left, int64(len(block)))]
		u.fill(random, block)
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// he returns the bound of uniform weights that preserves the variance through a Relu (He et al. 2015, equation 10).
func he(fanIn int64) float64 { return math.Sqrt(6 / float64(fanIn)) }

// lecun returns the bound of uniform weights that preserves the variance of a sum of fanIn products.
func lecun(fanIn int64) float64 { return math.Sqrt(3 / float64(fanIn)) }
