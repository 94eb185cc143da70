package display

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/tuner/progress"
)

var update = flag.Bool("update", false, "write the golden file")

func tuned() Curve {
	return Curve{
		Title: "resnet18 <2 threads> & more",
		Points: progress.Curve{
			{Elapsed: 4 * time.Second, Trials: 80, Seconds: 0.0244}, {Elapsed: 9 * time.Second, Trials: 160, Seconds: 0.0221},
			{Elapsed: 40 * time.Second, Trials: 600, Seconds: 0.0203}, {Elapsed: 200 * time.Second, Trials: 4100, Seconds: 0.0192},
		},
		Elapsed: 5 * time.Minute, Trials: 6000, Untuned: 0.0231, Limit: 0.0151,
	}
}

func draw(t *testing.T, c Curve) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteCurve(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestACurveIsDrawnAsItWas(t *testing.T) {
	const golden = "testdata/curve.svg"
	got := draw(t, tuned())
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the drawing differs from %s: look at it, and write it with -update\n%s", golden, got)
	}
}

// check verifies that a document is well-formed XML without scripts or NaN.
func check(t *testing.T, name string, document []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, document)
		}
		if start, is := token.(xml.StartElement); is && start.Name.Local == "script" {
			t.Errorf("%s: it has a script", name)
		}
	}
	for _, bad := range []string{"NaN", "Inf"} {
		if bytes.Contains(document, []byte(bad)) {
			t.Errorf("%s: it has %s in it\n%s", name, bad, document)
		}
	}
}

func TestAnyCurveIsWellFormed(t *testing.T) {
	one := progress.Curve{{Elapsed: time.Second, Trials: 4, Seconds: 0.001}}
	for name, c := range map[string]Curve{
		"usual":             tuned(),
		"nothing":           {},
		"untuned only":      {Untuned: 0.01, Elapsed: time.Second},
		"a single point":    {Points: one, Elapsed: time.Second, Trials: 4},
		"hostile title":     {Title: "</title><script>alert(1)</script>\x00\xff\"'", Points: one},
		"no numbers":        {Points: progress.Curve{{Seconds: math.NaN()}, {Seconds: math.Inf(1)}, {Seconds: -1}}, Untuned: math.Inf(1), Limit: math.NaN()},
		"no time":           {Points: one, Elapsed: 0, Trials: 0},
		"a clock gone back": {Points: progress.Curve{{Elapsed: -time.Hour, Trials: 1, Seconds: 1}}, Elapsed: -time.Hour, Trials: 1},
		"flat":              {Points: progress.Curve{one[0], one[0]}, Elapsed: time.Minute, Trials: 9, Untuned: 0.001, Limit: 0.001},
		"days":              {Points: one, Elapsed: 90 * time.Hour, Trials: 1 << 30},
		"nanoseconds":       {Points: progress.Curve{{Seconds: 2e-12}, {Seconds: 1e-12}}, Elapsed: time.Second, Trials: 2},
		"hours a run":       {Points: progress.Curve{{Seconds: 1e6}, {Seconds: 1}}, Elapsed: time.Second, Trials: 2},
		"beyond all":        {Points: progress.Curve{{Seconds: math.MaxFloat64}, {Seconds: math.SmallestNonzeroFloat64}}, Elapsed: time.Second, Trials: 2},
	} {
		check(t, name, draw(t, c))
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, c := range []struct {
		name string
		axis axis
		want string
	}{
		{"latencies", latencyAxis(0.0192, 0.0244), "latency (ms): 19 20 21 22 23 24 25"},
		{"a flat curve", latencyAxis(0.001, 0.001), "latency (ms): 0.990 0.995 1.000 1.005 1.010"},
		{"below a millisecond", latencyAxis(20e-6, 110e-6), "latency (µs): 20 40 60 80 100 120"},
		{"half a minute", timeAxis(31 * time.Second), "time (s): 0 10 20 30"},
		{"ten minutes", timeAxis(10 * time.Minute), "time (min): 0 2 4 6 8 10"},
		{"a day", timeAxis(24 * time.Hour), "time (h): 0 5 10 15 20"},
		{"few trials", countAxis(3), "trials: 0 1 2 3"},
		{"no trials", countAxis(0), "trials: 0 1"},
		{"many trials", countAxis(6400), "trials: 0 2000 4000 6000"},
	} {
		got := c.axis.name + ":"
		for _, tick := range c.axis.ticks {
			got += " " + c.axis.label(tick)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestAnExceededLimitIsNotDrawn is a regression test: the limit was drawn at the upper edge if Winograd's algorithm
// beat it.
func TestAnExceededLimitIsNotDrawn(t *testing.T) {
	for limit, want := range map[float64]bool{0.0151: true, 0.0192: true, 0.0193: false, 0.03: false, 0.005: false, 0: false} {
		c := tuned()
		c.Limit = limit
		if got := strings.Contains(string(draw(t, c)), ">machine&#39;s limit<"); got != want {
			t.Errorf("a limit of %v s is drawn: %v, want %v", limit, got, want)
		}
	}
}

func TestACurveWithoutLatencySaysWhy(t *testing.T) {
	if got := string(draw(t, Curve{Title: "m"})); !strings.Contains(got, "no latency: some tasks have no verified candidate yet") {
		t.Errorf("it says nothing of it:\n%s", got)
	}
}
