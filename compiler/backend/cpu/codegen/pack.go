package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
)

// packTable prints the packs of a kernel's prepared buffers as `const struct tilth_pack *const symbol_packs[]` and
// returns its name, or "0" if the kernel has no packs.
func (u *Unit) packTable(symbol string, inputs int, packs []ir.Pack) (string, error) {
	if len(packs) == 0 {
		return "0", nil
	}
	var table []string
	for _, p := range packs {
		name, err := u.pack(inputs+p.Constant, p)
		if err != nil {
			return "", err
		}
		table = append(table, "&"+name)
	}
	fmt.Fprintf(&u.code, "static const struct tilth_pack *const %s_packs[] = {%s};\n", symbol, strings.Join(table, ", "))
	return symbol + "_packs", nil
}

// pack prints the function that fills the packed constant arg, and its description. The unit prints each of them only
// once: the candidates of a batch share a few layouts.
func (u *Unit) pack(arg int, p ir.Pack) (name string, err error) {
	key := fmt.Sprintf("%d %s", arg, p.Workload.Text())
	if name, ok := u.packs[key]; ok {
		return name, nil
	}
	name = fmt.Sprintf("pack%d", len(u.packs))
	s, err := lower.PackSchedule(p)
	if err != nil {
		return "", err
	}
	f, err := lowered(s, u.plainPasses(), observe)
	if err != nil {
		return "", err
	}
	const runsOnce = "__attribute__((cold, noinline)) " // not worth optimising
	u.functions(name, f, runsOnce)
	// It has no workspace, but the workers' parts are derived from an address.
	fmt.Fprintf(&u.code, "static void %s_fill(const struct tilth_runtime *rt, void *const *args, void *packed) { void *const bound[] = {args[%d], packed}; %s_run(rt, bound, 0, packed); }\n", name, arg, name)
	fmt.Fprintf(&u.code, "static const struct tilth_pack %s = {%d, %s_fill};\n", name, p.Buffer.Bytes(), name)
	u.packs[key] = name
	return name, nil
}
