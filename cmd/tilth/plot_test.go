package main

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

var updatePlot = flag.Bool("update-plot", false, "write the golden file")

func tunedCurve() plotCurve {
	return plotCurve{
		Title: "resnet18 <2 threads> & more",
		Points: progress.Curve{
			{Elapsed: 4 * time.Second, Trials: 80, Seconds: 0.0244}, {Elapsed: 9 * time.Second, Trials: 160, Seconds: 0.0221},
			{Elapsed: 40 * time.Second, Trials: 600, Seconds: 0.0203}, {Elapsed: 200 * time.Second, Trials: 4100, Seconds: 0.0192},
		},
		Elapsed: 5 * time.Minute, Trials: 6000, Untuned: 0.0231, Limit: 0.0151,
	}
}

func drawCurve(t *testing.T, c plotCurve) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := c.write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCurveIsDrawnAsItWas(t *testing.T) {
	const golden = "testdata/curve.svg"
	got := drawCurve(t, tunedCurve())
	if *updatePlot {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the drawing differs from %s: look at it, and write it with -update-plot\n%s", golden, got)
	}
}

// checkSVG verifies that a document is well-formed XML without scripts or NaN.
func checkSVG(t *testing.T, name string, document []byte) {
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
	for name, c := range map[string]plotCurve{
		"usual":             tunedCurve(),
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
		checkSVG(t, name, drawCurve(t, c))
	}
}

func TestCurveWithoutLatencySaysWhy(t *testing.T) {
	if got := string(drawCurve(t, plotCurve{Title: "m"})); !strings.Contains(got, "no latency: some tasks have no verified candidate yet") {
		t.Errorf("it says nothing of it:\n%s", got)
	}
}
