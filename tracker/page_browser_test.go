package tracker_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// browser starts a browser, and returns its context and a function that returns its logged errors.
func browser(t *testing.T) (ctx context.Context, complaints func() []string) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-back-forward-cache", true)) // pages must be freed when left
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stopTab := chromedp.NewContext(ctx)
	t.Cleanup(stopTab)
	var mu sync.Mutex
	var heard []string
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			heard = append(heard, e.Entry.Text)
		case *runtime.EventExceptionThrown:
			heard = append(heard, e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return heard
	}
}

// TestPagesWorkInABrowser checks that pages work in a browser, with live updates, under their content security policy.
func TestPagesWorkInABrowser(t *testing.T) {
	c := newClosed(t, false)
	job := must[*tilthv1.Job](t)(c.submit("alice", "r")).GetId()
	ctx, complaints := browser(t)
	do := func(what string, steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		limited, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		if err := chromedp.Do(limited, steps...); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	do("sign in", chromedp.Navigate("http://"+c.web+"/jobs/"+job), chromedp.SendKeys(`input[name="token"]`, c.tokens["alice"]+"\r"),
		chromedp.WaitVisible(`h1 .queued`))
	if title := must[string](t)(chromedp.Run(ctx, chromedp.Title())); !strings.Contains(title, "resnet18") {
		t.Errorf("the page is called %q", title)
	}
	do("pause", chromedp.Click(`a[href$="/actions/pause"]`), chromedp.SendKeys(`input[name="reason"]`, "a look\r"),
		chromedp.WaitVisible(`h1 .paused`))
	if err := c.cancel("alice", job); err != nil { // the open page must show it without a reload
		t.Fatal(err)
	}
	do("hear of the end", chromedp.WaitVisible(`h1 .cancelled`))
	for _, path := range []string{"/", "/jobs", "/devices", "/records", "/compare"} {
		do(path, chromedp.Navigate("http://"+c.web+path), chromedp.WaitVisible(`h1`))
	}
	if heard := complaints(); len(heard) > 0 {
		t.Errorf("the browser complains: %s", heard)
	}
}

// TestBrowserWithoutScriptsShowsPredictions checks the positions of trials in the chart of measured over predicted
// times, the accessible names of charts, and keyboard access to the table of the fastest.
func TestBrowserWithoutScriptsShowsPredictions(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.predicted()
	server := httptest.NewServer(f.tracker.HTTPHandler())
	defer server.Close()
	ctx, complaints := browser(t)
	limited, cancel := context.WithTimeout(ctx, 10*time.Minute) // detects a hang
	defer cancel()
	off := emulation.SetScriptExecutionDisabledParams{Value: true}
	must[cdp.Empty](t)(chromedp.Call(limited, emulation.SetScriptExecutionDisabled, off))
	err := chromedp.Do(limited, chromedp.Navigate(server.URL+"/jobs/"+id+"/tasks/0"), chromedp.WaitVisible(`path.equal`),
		chromedp.Focus(`details summary`), chromedp.KeyEvent("\r"), chromedp.WaitVisible(`details[open] table`))
	if err != nil {
		t.Fatal(err)
	}
	count := func(expression string) int64 {
		return must[int64](t)(chromedp.Run(limited, chromedp.Evaluate[int64](expression)))
	}
	const drawing = `document.querySelector("path.equal").ownerSVGElement`
	if n := count(drawing + `.querySelectorAll("circle").length`); n != 7 {
		t.Errorf("%d trials are drawn, 7 were predicted", n)
	}
	// A trial that was measured as predicted must be on the line: at the same distance from the lower left corner as
	// the slope gives.
	n := count(`(() => {
		const line = ` + drawing + `.querySelector("path.equal"), length = line.getTotalLength();
		const [a, b] = [line.getPointAtLength(0), line.getPointAtLength(length)];
		return [...` + drawing + `.querySelectorAll("circle.dot")].filter((c) => {
			const [x, y] = [c.cx.baseVal.value - a.x, c.cy.baseVal.value - a.y];
			return Math.abs(x * (b.y - a.y) - y * (b.x - a.x)) / length > 0.2;
		}).length;
	})()`)
	if n != 1 {
		t.Errorf("%d trials are off the line, only one was not measured as predicted", n)
	}
	if n := count(`[...document.querySelectorAll("svg[role=img]")].filter((s) => !s.getAttribute("aria-label")).length`); n != 0 {
		t.Errorf("%d drawings have no name", n)
	}
	if heard := complaints(); len(heard) > 0 {
		t.Errorf("the browser complains: %s", heard)
	}
}
