package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// streams reports whether a vector is stored past the caches: one as wide as a register, at a multiple of its size.
func (p *printer) streams(b *ir.Buffer, at expr.Linear) bool {
	if !b.Streamed || p.lanes != p.unit.lanes(b.Tensor.DType) || p.lanes < 2 || at.Const%p.lanes != 0 {
		return false
	}
	for _, t := range at.Terms {
		if t.Coef%p.lanes != 0 {
			return false
		}
	}
	return true
}

// stream prints such a store.
func (p *printer) stream(b *ir.Buffer, at expr.Linear, value string) {
	p.line("%s(&%s, %s);", p.unit.streaming(b.Tensor.DType, p.lanes), p.element(b.Tensor, at), value)
	p.streamed = true
}

// endStreams makes what the function stored past the caches visible before what it does next, such as telling others
// that it is done: on x86 the only stores that overtake others.
func (p *printer) endStreams() {
	if p.streamed {
		p.line("tilth_end_streams();")
	}
}

// streaming declares the store of a vector past the caches, once, and returns its name. A compiler that has none
// stores as usual.
func (u *Unit) streaming(d array.DType, lanes int64) string {
	t := u.vector(d, lanes)
	name := "tilth_stream_" + t
	if u.declarations.has(name) {
		return name
	}
	u.declarations.declare("tilth_stream", streamPrelude)
	u.declarations.declare(name, fmt.Sprintf(`#ifdef TILTH_STREAMS
#define %[1]s(p, ...) __builtin_nontemporal_store((%[2]s)(__VA_ARGS__), (%[2]s *)(p))
#else
#define %[1]s(p, ...) (*(%[2]s_mem *)(p) = (__VA_ARGS__))
#endif
`, name, t))
	return name
}

const streamPrelude = `#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define TILTH_STREAMS
#endif
#endif
#if defined(TILTH_STREAMS) && defined(__x86_64__)
#define tilth_end_streams() __builtin_ia32_sfence()
#else
#define tilth_end_streams() ((void)0)
#endif
`
