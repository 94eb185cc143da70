package profile

import (
	"fmt"
	"io"
	"strconv"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// writeDevice writes the profile of a model on a device: one line per task, then one for the gaps between launches.
func (p *Profile) writeDevice(w io.Writer) error {
	table := humanize.NewTable(">TIME", ">SHARE", ">CALLS", ">"+p.unit("T"), ">PEAK", ">GB/s", ">OF MEMORY", ">LAUNCHES", ">OCCUPANCY", ">REGISTERS", "SCHEDULE", "ALGORITHM", "TASK", "NODES")
	d := p.Device
	for _, c := range p.byTask() {
		occupancy, registers := c.occupancy()
		table.Row(humanize.Seconds(c.Seconds), percent(ratio(c.Seconds, d.Seconds)), fmt.Sprint(c.calls), humanize.TFLOPS(c.Flop+c.IntegerOps, c.Seconds), c.peakShare(),
			humanize.GFLOPS(float64(c.Bytes), c.Seconds), p.memoryShare(c.Work), fmt.Sprint(len(c.Launches)), occupancy, registers, c.Origin, c.algorithm(), c.Task, c.nodes())
	}
	table.Row(humanize.Seconds(d.GapSeconds), percent(ratio(d.GapSeconds, d.Seconds)), "", "", "", "", "", "", "", "", "", "", fmt.Sprintf("between the %d launches", d.Launches))
	if err := table.Write(w); err != nil {
		return err
	}
	t := p.Total
	_, err := fmt.Fprintf(w, "\ntotal %s on the device: kernels %s in %d calls, launches and gaps %s; copies of inputs and outputs %s beside that\n"+
		"kernels: %s %s, %s; at the device's %s %s\n"+
		"device: %s TFLOP/s of fused multiply-adds%s, %s GB/s from and to memory\n",
		humanize.Seconds(d.Seconds), humanize.Seconds(t.Seconds), len(p.Calls), humanize.Seconds(d.GapSeconds), humanize.Seconds(d.CopySeconds),
		humanize.TFLOPS(t.Flop+t.IntegerOps, t.Seconds), p.unit("T"), t.ofThePeak(), t.limits(), humanize.Seconds(t.LimitSeconds),
		humanize.TFLOPS(p.Peak.FlopsPerSecond, 1), p.matrices(), humanize.GFLOPS(p.Peak.BytesPerSecond, 1))
	return err
}

// matrices describes the rates of the matrix formats that the model uses.
func (p *Profile) matrices() string {
	text := ""
	for _, format := range p.Device.Matrices {
		rate := unknown
		if known := p.Peak.Matrices[format]; known > 0 {
			rate = humanize.TFLOPS(known, 1)
		}
		text += fmt.Sprintf(", %s of products of matrices in %s", rate, format)
	}
	return text
}

// memoryShare returns the minimum time for the bytes divided by the time taken.
func (p *Profile) memoryShare(w Work) string {
	if w.Bytes == 0 || p.Peak.BytesPerSecond == 0 {
		return humanize.Missing
	}
	return percent(w.BytesPerSecond / p.Peak.BytesPerSecond)
}

// occupancy returns that of a call's longest launch, with its registers and spills.
func (c *Call) occupancy() (share, registers string) {
	if len(c.Launches) == 0 {
		return humanize.Missing, humanize.Missing
	}
	l := c.Launches[0]
	registers = strconv.Itoa(l.Registers)
	if l.SpilledBytes > 0 {
		registers += fmt.Sprintf(" and %d B", l.SpilledBytes)
	}
	return percent(l.Occupancy), registers
}
