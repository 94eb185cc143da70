package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/cmd/tilth/display"
	"github.com/tilth-dev/tilth/internal/disk"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/trials"
)

// plotFlag names the file for a plot of a job's latency; empty means none.
type plotFlag string

func (f *plotFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(f), "plot", "", "SVG `file` for the latency over time and trials")
}

// begin writes an empty plot, so that an unwritable file is detected early.
func (f plotFlag) begin() error {
	if f == stdio {
		return usagef("--plot -: name a file, since standard output has the summary")
	}
	return f.draw(display.Curve{Title: "not measured yet"})
}

// write plots the tally of a job.
func (f plotFlag) write(j *tilthv1.Job, t *trials.Tally) error {
	return f.draw(display.CurveOf(j.GetSpec().GetName()+" on "+j.GetSpec().GetTarget().GetFingerprint(), t))
}

func (f plotFlag) draw(c display.Curve) error {
	if f == "" {
		return nil
	}
	return disk.WriteFile(string(f), func(w io.Writer) error { return display.WriteCurve(w, c) })
}
