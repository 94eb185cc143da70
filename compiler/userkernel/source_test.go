package userkernel

import (
	"strings"
	"testing"
)

// TestIncludesAreRefused: the digest would not cover included files.
func TestIncludesAreRefused(t *testing.T) {
	for _, source := range []string{
		`#include "tile.h"`, `#include </etc/passwd>`, `#include <../tile.h>`, `#include <a/../../tile.h>`, `#include HEADER`,
		`# include "tile.h"`, `#/**/include "tile.h"`, "#/*\n*/include \"tile.h\"", `%:include "tile.h"`, "#inc\\\nlude \"tile.h\"",
		"#inc\\ \r\nlude \"tile.h\"", `#include_next <math.h>`, `#import "tile.h"`, `#embed "weights"`, `#embed <weights>`, `#include<tile>`,
		"#\tinclude/**/\"tile.h\"", `#include <math.h> "tile.h"`, `const char *s = "/*"; ` + "\n" + `#include "tile.h" // */`,
		"#if __has_include(\"tile.h\")\n#endif", `__asm__(".incbin \"weights\"");`, `__asm__(".INCBIN \"weights\"");`,
		`__asm__(".include \"tile.s\"");`, "#include \\\n\"tile.h\"", "#include",
	} {
		if err := checkSource("int x;\n" + source + "\n"); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is accepted, or the error has several lines: %v", source, err)
		}
	}
	for _, source := range []string{
		"#include <immintrin.h>", "# include\t<math.h>  // for sqrtf", "#include <string.h> /* memcpy */", "#include <sys/types.h>\r", "#include<math.h>",
		"#define INCLUDED 1", "#pragma GCC unroll 4", "// what to include: nothing", `__asm__("vzeroupper");`, "#define included(x) #x",
		"#undef import_table",
	} {
		if err := checkSource("int x;\n" + source + "\n"); err != nil {
			t.Error(err)
		}
	}
	_, err := parseFolder([]byte(description), []byte("#include \"tile.h\"\n"))
	if err == nil || !strings.Contains(err.Error(), `the source has "#include \"tile.h\"": a kernel may include standard headers only`) {
		t.Error(err)
	}
}
