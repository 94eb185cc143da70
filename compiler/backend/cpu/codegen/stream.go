package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// endStreams makes what a function stored past the caches visible before what it does next, such as telling others
// that it is done: on x86 the only stores that overtake others.
func (p *printer) endStreams(streams bool) {
	if streams {
		p.line("tilth_end_streams();")
	}
}

// streaming declares the store of a vector past the caches, once, and returns its name. A compiler that has none
// stores as usual.
func (u *Unit) streaming(d array.DType, lanes int64) string {
	t := u.vector(d, lanes)
	name := "tilth_stream_" + t
	if u.declarations.Has(name) {
		return name
	}
	u.declarations.Declare("tilth_stream", streamPrelude)
	u.declarations.Declare(name, fmt.Sprintf(`#ifdef TILTH_STREAMS
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
