package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// packageView describes a package in JSON.
type packageView struct {
	Package   string `json:"package"`
	SizeBytes int64  `json:"size_bytes"`
	Format    int    `json:"format"`
	Model     string `json:"model"`
	// Target is the fingerprint of the target, and Toolchain the compiler in it.
	Target    string `json:"target"`
	Toolchain string `json:"toolchain"`
	Threads   int    `json:"threads"`
	// Provenance is missing in packages of older versions.
	Provenance   *aot.Provenance `json:"provenance,omitempty"`
	Inputs       []aot.Tensor    `json:"inputs"`
	Outputs      []aot.Tensor    `json:"outputs"`
	ArenaBytes   int64           `json:"arena_bytes"`
	WeightsBytes int64           `json:"weights_bytes"`
	// C describes the memory use of an archive of C source.
	C        *aot.CSource  `json:"c,omitempty"`
	Weights  *aot.Weights  `json:"weights,omitempty"`
	Accuracy *aot.Accuracy `json:"accuracy,omitempty"`
	// Libraries lists the libraries that hand-written kernels call, which must be installed where the package runs.
	Libraries []aot.Library `json:"libraries,omitempty"`
	Tasks     []packageTask `json:"tasks"`
}

// packageTask is a kernel of a package.
type packageTask struct {
	Task     string `json:"task"`
	Workload string `json:"workload"`
	// Origin is tuned, transferred or default.
	Origin string `json:"origin"`
	// Latency is the latency measured during tuning.
	Latency float64 `json:"latency_s,omitempty"`
	// Record is the record of a tuned schedule.
	Record *aot.Record `json:"record,omitempty"`
	// Kernel is the hand-written kernel of the task, if any.
	Kernel *aot.OwnKernel `json:"kernel,omitempty"`
}

func newPackageShow(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "show PACKAGE.tar", Short: "Show the contents and the provenance of a package",
		Example: "  tilth package show resnet18.tar\n  tilth package show resnet18.tar --json | jq .provenance",
		Args:    cobra.ExactArgs(1),
	}
	a.tableFlags(c)
	return a.leaf(c, func(_ context.Context, args []string) error {
		file, done, err := a.inputFile(args[0])
		if err != nil {
			return err
		}
		defer done()
		v, err := viewPackage(args[0], file)
		if err != nil {
			return err
		}
		return a.show(v, v.print)
	})
}

func viewPackage(name, file string) (v packageView, err error) {
	m, err := aot.ReadManifest(file)
	if err != nil {
		return v, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return v, err
	}
	v = packageView{
		Package: name, SizeBytes: info.Size(), Format: m.Format, Model: m.Model, Target: m.Target.Fingerprint(), Toolchain: m.Target.Toolchain,
		Threads: m.Target.Threads(), Provenance: m.Provenance, Inputs: m.Inputs, Outputs: m.Outputs, ArenaBytes: m.ArenaBytes,
		WeightsBytes: m.WeightsBytes, C: m.C, Weights: m.Weights, Accuracy: m.Accuracy, Libraries: m.Libraries(), Tasks: []packageTask{},
	}
	for _, t := range m.Tasks {
		v.Tasks = append(v.Tasks, packageTask{Task: t.Name, Workload: t.Workload, Origin: t.Origin, Latency: t.LatencySeconds, Record: t.Record, Kernel: t.Kernel})
	}
	return v, nil
}

func (v packageView) print(w io.Writer) error {
	var head strings.Builder
	fmt.Fprintf(&head, "%s (%s), of model %s\ntarget: %s\n", v.Package, humanize.Bytes(v.SizeBytes), v.Model, v.Target)
	if p := v.Provenance; p != nil {
		fmt.Fprintf(&head, "device class: %s\nmodel's sha256: %s\nmade by: tilth %s (commit %s), %s, numerics %s\n",
			p.DeviceClass, cmp.Or(p.ModelSHA256, "not known"), p.Tilth, cmp.Or(p.Commit, "not known"), v.Toolchain, p.Numerics)
		for _, f := range p.ModelData {
			fmt.Fprintf(&head, "model's data: %q (%s), sha256 %s\n", f.Name, humanize.Bytes(f.Bytes), f.SHA256)
		}
	}
	for _, l := range v.Libraries {
		fmt.Fprintf(&head, "calls: %s\n", l)
	}
	if v.C != nil {
		fmt.Fprintln(&head, memoryText(v.C))
	}
	if _, err := io.WriteString(w, head.String()); err != nil {
		return err
	}
	table := humanize.NewTable("TASK", "WORKLOAD", "SCHEDULE", ">LATENCY", "CANDIDATE", "MEASURED")
	for _, t := range v.Tasks {
		candidate, at := humanize.Missing, humanize.Missing
		if t.Record != nil {
			candidate, at = humanize.Digest(t.Record.Candidate), t.Record.MeasuredAt
		}
		origin := t.Origin
		if t.Kernel != nil {
			origin += ", own kernel " + t.Kernel.Name
		}
		table.Row(t.Task, humanize.Digest(t.Workload), origin, humanize.Seconds(t.Latency), candidate, at)
	}
	return table.Write(w)
}
