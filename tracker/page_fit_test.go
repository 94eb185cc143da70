package tracker_test

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the pages that a browser is shown")

// shown returns a farm with content for every page, and the paths of its pages by name.
func shown(t testing.TB) (f *trackerFarm, paths map[string]string) {
	t.Helper()
	c := newClock()
	f = newFarm(t, tracker.Config{Now: c.now})
	id := f.measured().GetId()
	s := spec("conv2d+relu 1x56x56x64 k3x3 -> 64")
	s.Tasks[0].PeakSeconds, s.Tasks[0].ByteSeconds, s.Tasks[0].Flop = 2e-4, 5e-4, 2.3e8
	f.submit("waits", s)
	session := f.calibratingRunner().GetSession()
	for i := range 20 {
		c.forward(time.Minute)
		f.heartbeat(session)
		report := &tilthv1.CalibrationReport{Kernels: "k", Surroundings: &tilthv1.Surroundings{
			Temperatures: []*tilthv1.Temperature{{Sensor: "package", Celsius: 50 + float64(i*i%17)}},
		}}
		for range 5 {
			report.ComputeSeconds = append(report.ComputeSeconds, 2e-3*(1+float64(i%4)/300))
			report.MemorySeconds = append(report.MemorySeconds, 8e-3)
		}
		must[*tilthv1.ReportCalibrationResponse](t)(wired{f}.client().ReportCalibration(t.Context(),
			&tilthv1.ReportCalibrationRequest{Session: session, Report: report}))
	}
	for i := range 60 {
		f.labelledRunner(fmt.Sprintf("board-%02d/runner", i), fmt.Sprint(i/12), "x86")
	}
	return f, map[string]string{
		"overview": "/", "jobs": "/jobs", "job": "/jobs/" + id, "task": "/jobs/" + id + "/tasks/0", "clone": "/jobs/" + id + "/actions/clone",
		"devices": "/devices", "board": "/devices?view=board", "device": "/device?name=" + url.QueryEscape("runner"),
		"records": "/records", "compare": "/compare?a=" + id + "&b=" + id,
	}
}

// TestPagesFitAPhoneAndADesk checks that no page exceeds the window's width. Wide tables must scroll separately.
func TestPagesFitAPhoneAndADesk(t *testing.T) {
	f, paths := shown(t)
	server := httptest.NewServer(f.tracker.HTTPHandler())
	defer func() {
		server.CloseClientConnections() // event streams would last as long as the browser
		server.Close()
	}()
	ctx, complaints := browser(t)
	limited, cancel := context.WithTimeout(ctx, 10*time.Minute) // detects a hang
	defer cancel()
	for _, width := range []int64{380, 1280} {
		for name, path := range paths {
			if err := chromedp.Do(limited, chromedp.EmulateViewport(width, 900), chromedp.Navigate(server.URL+path), chromedp.WaitVisible(`h1`)); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			beyond := must[int64](t)(chromedp.Run(limited, chromedp.Evaluate[int64](`document.documentElement.scrollWidth - innerWidth`)))
			if beyond > 0 {
				t.Errorf("%s is %d pixels wider than a window of %d", path, beyond, width)
			}
			if *screenshots != "" {
				picture := must[[]byte](t)(chromedp.Run(limited, chromedp.FullScreenshot(100)))
				if err := os.WriteFile(filepath.Join(*screenshots, fmt.Sprintf("%s-%d.png", name, width)), picture, 0o644); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if heard := complaints(); len(heard) > 0 {
		t.Errorf("the browser complains: %s", heard)
	}
}

// TestPhoneShowsProgressLatencyAndSpeedUp checks that these columns of lists of jobs need no scrolling.
func TestPhoneShowsProgressLatencyAndSpeedUp(t *testing.T) {
	f, _ := shown(t)
	server := httptest.NewServer(f.tracker.HTTPHandler())
	defer func() {
		server.CloseClientConnections() // event streams would last as long as the browser
		server.Close()
	}()
	ctx, _ := browser(t)
	limited, cancel := context.WithTimeout(ctx, 10*time.Minute) // detects a hang
	defer cancel()
	for _, path := range []string{"/", "/jobs"} {
		if err := chromedp.Do(limited, chromedp.EmulateViewport(390, 844), chromedp.Navigate(server.URL+path), chromedp.WaitVisible(`.jobs progress`)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		right := must[string](t)(chromedp.Run(limited, chromedp.Evaluate[string](`["Progress", "Latency", "Speed-up"].map((name) => {
			const head = [...document.querySelectorAll(".jobs th")].find((th) => th.textContent === name);
			const cells = [...document.querySelectorAll(".jobs tr")].map((row) => row.cells[head.cellIndex]);
			const right = Math.max(...cells.map((cell) => cell.getBoundingClientRect().right));
			return right <= innerWidth ? "" : name + " ends at " + right + "; ";
		}).join("")`)))
		if right != "" {
			t.Errorf("%s: of 390 pixels, %s", path, right)
		}
	}
}
