package main

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/humanize"
)

//go:embed tasks.html
var dumpPage string

// writePage writes a page with a kernel after each step, beside the kernel before.
func writePage(w io.Writer, title string, steps []backend.Step) error {
	type row struct {
		Name, Time string
		Hunks      []hunk
	}
	var rows []row
	var before []string
	for _, s := range steps {
		lines := strings.Split(strings.TrimSuffix(s.Text, "\n"), "\n")
		if s.Name == backend.Source {
			before = lines // another language
		}
		rows, before = append(rows, row{s.Name, humanize.Seconds(s.Took.Seconds()), diff(before, lines)}), lines
	}
	return template.Must(template.New("page").Parse(dumpPage)).Execute(w, map[string]any{"Title": title, "Steps": rows})
}

// primitives returns the loops of a schedule after each of its primitives. Where these make no program yet, the step
// has the loops before, and its name gives the reason.
func primitives(s *schedule.Schedule) (steps []backend.Step) {
	lines := strings.SplitAfter(string(s.Trace()), "\n")
	step := backend.Step{Name: "workload"}
	for k := 1; k < len(lines) && s.Own == nil; k++ {
		part, err := schedule.Replay(s.Workload, []byte(strings.Join(lines[:k], "")))
		if err == nil {
			if f, fault := lower.Schedule(part); fault == nil {
				step.Text = f.Text()
			} else {
				err = fault
			}
		}
		if err != nil {
			step.Name += ": " + err.Error()
		}
		steps = append(steps, step)
		step.Name = strings.TrimSpace(lines[k])
	}
	return steps
}

// hunk is a run of lines that two texts share, or that one has in place of the other's.
type hunk struct {
	Before, After []string
	Same          bool
}

// maxCompared bounds the pairs of lines that diff compares: texts that exceed it differ as a whole.
const maxCompared = 1 << 24

// diff returns the hunks of two texts. They share as many lines as possible.
func diff(a, b []string) (out []hunk) {
	add := func(same bool, before, after []string) {
		if len(out) == 0 || out[len(out)-1].Same != same {
			out = append(out, hunk{Same: same})
		}
		h := &out[len(out)-1]
		h.Before, h.After = append(h.Before, before...), append(h.After, after...)
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		add(true, a[:1], b[:1])
		a, b = a[1:], b[1:]
	}
	if len(a)*len(b) > maxCompared {
		add(false, a, b)
		return out
	}
	shared := make([][]int32, len(a)+1) // at i, j: the number of lines that a[i:] and b[j:] share
	for i := len(a); i >= 0; i-- {
		shared[i] = make([]int32, len(b)+1)
		for j := len(b) - 1; j >= 0 && i < len(a); j-- {
			if shared[i][j] = max(shared[i+1][j], shared[i][j+1]); a[i] == b[j] {
				shared[i][j] = shared[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			add(true, a[i:i+1], b[j:j+1])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && shared[i+1][j] >= shared[i][j+1]:
			add(false, a[i:i+1], nil)
			i++
		default:
			add(false, nil, b[j:j+1])
			j++
		}
	}
	return out
}
