package op_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestIntegersAreMoved: operators that move or choose elements do so with integers, and requantising to the same scale
// is nothing.
func TestIntegersAreMoved(t *testing.T) {
	start := func() modeltest.Model { return quantisedInput(1, 8, 6, 6) }
	for _, c := range []struct {
		name  string
		model modeltest.Model
		want  string
	}{
		{"MaxPool", start().Node("m = MaxPool qx", modeltest.Ints("kernel_shape", 2, 2)), "max t"},
		{"Concat of one scale", start().Node("c = Concat qx qx", modeltest.Int("axis", 1)).Node("m = MaxPool c", modeltest.Ints("kernel_shape", 3, 3)), "max t"},
		{"Flatten", start().Node("f = Flatten qx").Node("m = Flatten f"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.model.Node("qm = QuantizeLinear m sx zx").Node("y = DequantizeLinear qm sx zx").Output("y")
			p := modeltest.Import(t, m)
			text := ""
			for _, task := range p.Tasks {
				text += task.Workload.Text()
			}
			if got := strings.Count(text, "(round "); got != 1 {
				t.Errorf("values are quantised %d times, want once:\n%s", got, text)
			}
			if c.want != "" && !strings.Contains(text, c.want) {
				t.Errorf("there is no %q in\n%s", c.want, text)
			}
			for _, line := range strings.Split(text, "\n") {
				if strings.HasPrefix(line, "max ") && !strings.Contains(line, " u8[") {
					t.Errorf("a maximum of something else than integers: %s", line)
				}
			}
			got := modeltest.Run(t, p)["y"]
			want := modeltest.Run(t, modeltest.Import(t, withoutQuantisation(t, c.model.Node("y = Identity m").Output("y"), p.Values[p.Inputs[0]].Shape)))["y"]
			if err := modeltest.Compare(got, want); err != nil {
				t.Error(err)
			}
		})
	}
}
