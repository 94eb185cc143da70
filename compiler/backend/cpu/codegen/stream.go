package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// endStreams makes a function's non-temporal stores visible before it proceeds, for example before it signals
// completion. On x86 only these stores may be reordered with others.
func (p *printer) endStreams(streams bool) {
	if streams {
		p.line("tilth_end_streams();")
	}
}

// streaming declares a vector's non-temporal store once, and returns its name. Compilers without one store as usual.
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
