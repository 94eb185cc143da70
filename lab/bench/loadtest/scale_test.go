package loadtest

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDrawingIsADocumentWithAllPoints(t *testing.T) {
	at := func(x, cost float64) point {
		return point{At: x, Details: Details{Report: Report{TrackerCPUSeconds: cost}}}
	}
	s := sweep{Devices: []point{at(10, 31), at(10000, 37)}, Records: []point{at(1e4, 32), at(1e5, 33), at(1e7, 41)}}
	drawn := s.draw()
	if n := strings.Count(drawn, "<circle"); n != 5 {
		t.Errorf("%d points", n)
	}
	for d := xml.NewDecoder(strings.NewReader(drawn)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for v, want := range map[float64]float64{0: 1, 41: 50, 50: 50, 51: 100, 101: 200} {
		if got := ceiling(v); got != want {
			t.Errorf("the axis for %v ends at %v, want %v", v, got, want)
		}
	}
}
