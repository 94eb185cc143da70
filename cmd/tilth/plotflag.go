package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/cmd/tilth/display/plot"
	"github.com/tilth-dev/tilth/internal/atomicfile"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuning/trials"
)

// plotFlag is the file for a drawing of how a job's latency came down; empty = none.
type plotFlag string

func (f *plotFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(f), "plot", "", "SVG `file` for the latency over time and trials")
}

// begin writes an empty drawing, so that a file that cannot be written is known before anything else is done.
func (f plotFlag) begin() error {
	if f == stdio {
		return usagef("--plot -: name a file, since standard output has the summary")
	}
	return f.draw(plot.Curve{Title: "not measured yet"})
}

// write draws what a tally of a job has.
func (f plotFlag) write(j *tilthv1.Job, t *trials.Tally) error {
	return f.draw(plot.Of(j.GetSpec().GetName()+" on "+j.GetSpec().GetTarget().GetFingerprint(), t))
}

func (f plotFlag) draw(c plot.Curve) error {
	if f == "" {
		return nil
	}
	return atomicfile.Write(string(f), func(w io.Writer) error { return plot.Write(w, c) })
}
