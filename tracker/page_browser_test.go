package tracker_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// browser starts a browser, and returns its context and what it complained of so far.
func browser(t *testing.T) (ctx context.Context, complaints func() []string) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
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

// TestABrowserSignsInLooksAndPauses shows that pages work in a browser, live, within their content policy.
func TestABrowserSignsInLooksAndPauses(t *testing.T) {
	c := newClosed(t, false)
	job := must[*tilthv1.Job](t)(c.submit("alice", "r")).GetId()
	ctx, complaints := browser(t)
	do := func(what string, steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
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
	if err := c.cancel("alice", job); err != nil { // which the page hears of, and nobody loads it again
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
