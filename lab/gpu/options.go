package gpu

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// options holds the command line.
type options struct {
	// tilth is the program, lab the laboratory's. python is an interpreter with PyTorch, or empty.
	tilth, lab, python string
	// version is the version of the tree.
	version string
	// out is the folder of results, work that of intermediate files.
	out, work string
	// cases is the folder of ONNX conformance cases.
	cases string
	// kernels is the example of a kernel that calls a GPU library.
	kernels string
	// sandbox is the sandbox mode of tuning.
	sandbox string
	limit   time.Duration
	only    []string
	// plan only lists the steps.
	plan bool
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("gpu", flag.ContinueOnError)
	flags.StringVar(&o.tilth, "tilth", "bin/tilth", "the program")
	flags.StringVar(&o.python, "python", "python3", "a Python that has PyTorch; '' compares with nothing")
	flags.StringVar(&o.version, "version", "unknown", "version of the tree; steps that it did are not done again")
	flags.StringVar(&o.out, "out", resultsFolder, "folder that keeps results and records")
	flags.StringVar(&o.work, "work", ".tools/card", "folder of models, records and packages")
	flags.StringVar(&o.cases, "cases", "/usr/share/libonnx-testdata/data/node", "folder of ONNX's conformance cases")
	flags.StringVar(&o.kernels, "kernels", "examples/cublaslt-product", "folder of a kernel that calls a library of cards")
	flags.StringVar(&o.sandbox, "sandbox", "best-effort", "isolation of candidates: required, best-effort or off; off is used where this one fails")
	flags.DurationVar(&o.limit, "limit", 9*time.Minute, "begin no step that is not expected to end within this time")
	flags.BoolVar(&o.plan, "plan", false, "list the steps that are left and what they are expected to take, without a card")
	only := flags.String("only", "", "steps whose names begin so, separated by commas (default all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	o.only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	o.lab, err = os.Executable()
	return o, err
}

// wants reports whether a step was requested.
func (o options) wants(step string) bool {
	return len(o.only) == 0 || slices.ContainsFunc(o.only, func(p string) bool { return strings.HasPrefix(step, p) })
}
