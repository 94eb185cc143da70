package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
)

// catalogue has a group of records per target and workload, two on each page.
type catalogue []records.Group

func (c catalogue) Groups(_ context.Context, _ storesync.Filter, after string) (page []storesync.Summary, next string, err error) {
	at := 0
	if after != "" {
		if _, err := fmt.Sscan(after, &at); err != nil {
			return nil, "", err
		}
	}
	for _, g := range c[at:min(at+2, len(c))] {
		page = append(page, storesync.Summary{Group: g})
	}
	if at += 2; at < len(c) {
		next = fmt.Sprint(at)
	}
	return page, next, nil
}

func TestUntunedTasksHaveReasons(t *testing.T) {
	machine, err := registry.Target("x86-64-v3", 2)
	if err != nil {
		t.Fatal(err)
	}
	machine = machine.WithToolchain("clang-19.1.7")
	var tasks []program.Task
	add := func(w *expr.Workload) string {
		tasks = append(tasks, program.Task{Name: fmt.Sprintf("task %d", len(tasks)), Workload: w})
		return w.Digest()
	}
	add(kerneltest.Product(t, 8, 8, 8))
	elsewhere, failed, refused := add(kerneltest.Product(t, 8, 8, 16)), add(kerneltest.Product(t, 8, 16, 8)), add(kerneltest.Product(t, 16, 8, 8))
	for n := range int64(8) {
		add(kerneltest.Product(t, 8, 8, 32+n))
	}
	choices := make([]aot.Choice, len(tasks))
	choices[0].Origin, choices[1].Origin = bestschedule.FromRecord, bestschedule.FromTransfer
	source := catalogue{
		{Target: machine.WithThreads(1).Fingerprint(), Workload: elsewhere}, {Target: machine.WithToolchain("gcc-12.2.0").Fingerprint(), Workload: elsewhere},
		{Target: machine.WithThreads(16).WithToolchain("gcc-12.2.0").Fingerprint(), Workload: elsewhere}, {Target: "another", Workload: elsewhere},
		{Target: machine.Fingerprint(), Workload: failed}, {Target: "another", Workload: failed}, {Target: machine.Fingerprint(), Workload: refused},
	}
	reasons, err := explainUntuned(t.Context(), tasks, choices, machine, source, map[string]string{refused: "it does not replay"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "records only for 1 thread, for 16 threads with gcc-12.2.0, for gcc-12.2.0, for target another: 1 (task 1); " +
		"no correct record (all trials failed, or need another level of --numerics): 1 (task 2); " +
		"record not used: it does not replay: 1 (task 3); " +
		"no record: 8 (task 4, task 5, task 6, task 7, task 8, and 3 more)"
	if got := untuned(tasks, choices, reasons).String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	for k, task := range tasks {
		reasons[task.Workload.Digest()] = fmt.Sprintf("reason %d", k)
	}
	if list := untuned(tasks, choices, reasons); len(list) != maxUntuned || list[maxUntuned-1].Reason != "other reasons" || list[maxUntuned-1].Count != 7 {
		t.Errorf("of many reasons, %v are listed", list)
	}
}
