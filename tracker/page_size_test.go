package tracker_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// Limits for the pages of a large farm: bytes sent per page, nodes and bytes of the browser's memory, and height in
// pixels at desktop width.
const (
	maxPageBytes = 4 << 20
	maxNodes     = 60_000
	maxHeapBytes = 64 << 20
	maxPixels    = 20_000
)

// joinMany joins many runners.
func (f *trackerFarm) joinMany(many int) {
	f.Helper()
	var joining sync.WaitGroup
	next := make(chan int)
	for range 100 {
		joining.Go(func() {
			for n := range next {
				spec := agentSpec(fmt.Sprintf("board-%05d", n), tilthv1.AgentKind_AGENT_KIND_RUNNER)
				spec.DeviceClasses[0].Descriptor_ = bytes.Repeat([]byte{'x'}, 2000)
				spec.Labels = map[string]string{"rack": fmt.Sprint(n / 100)}
				if _, err := f.agents.Join(f.Context(), &tilthv1.JoinRequest{Spec: spec}); err != nil {
					f.Error(err)
				}
			}
		})
	}
	for n := range many {
		next <- n
	}
	close(next)
	joining.Wait()
}

// trialsTogether is the number of a task's trials per transaction.
const trialsTogether = 250

// storeJob stores an ended job with the given number of trials of each of its tasks.
func (f *trackerFarm) storeJob(id string, trials ...int) {
	f.Helper()
	var names []string
	for i := range trials {
		names = append(names, fmt.Sprintf("conv2d+relu 1x%dx56x64 k3x3 -> 64", i))
	}
	s := spec(names...)
	progress := make([]*tilthv1.TaskProgress, len(trials))
	for i, n := range trials {
		progress[i] = &tilthv1.TaskProgress{Trials: uint32(n), Proposed: uint32(n), BestSeconds: 1e-3}
	}
	began := time.Now().Add(-time.Hour)
	sequence := uint64(0)
	writes := []func(w *records.Write){func(w *records.Write) {
		w.PutNew(id, records.RequestKey("", id), records.EncodeJob(s, progress))
		w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{
			Id: id, State: tilthv1.JobState_JOB_STATE_CANCELLED, CreatedAt: timestamppb.New(began), EndedAt: timestamppb.Now(),
		}})
	}}
	for first := 0; first < slices.Max(trials); first += trialsTogether {
		writes = append(writes, func(w *records.Write) {
			for task, n := range trials {
				var together []*tilthv1.JobEvent
				for trial := first; trial < min(n, first+trialsTogether); trial++ {
					sequence++
					together = append(together, trialOf(id, task, trial, sequence, began.Add(time.Duration(sequence)*time.Millisecond)))
				}
				if together != nil {
					w.AppendTrials(id, "cpu-1", s.GetTasks()[task], together)
				}
			}
		})
	}
	f.store(writes...)
}

// trialOf returns the event of a trial with an approximately correct prediction.
func trialOf(job string, task, trial int, sequence uint64, at time.Time) *tilthv1.JobEvent {
	best := 1e-3 * (1 + 1/float64(1+trial))
	latency := best + 1e-6*float64(trial*7919%1000)
	c := candidates(fmt.Sprint(job, task, trial))[0]
	m := ok(c, latency)
	c.Trial, c.Origin = uint32(trial), fmt.Appendf(nil, "tile=%d unroll=%d", trial%64, trial%4)
	m.Candidate, m.At, m.Device = c, timestamppb.New(at), fmt.Sprintf("board-%05d", trial%10_000)
	return &tilthv1.JobEvent{Sequence: sequence, At: m.GetAt(), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
		TaskIndex: uint32(task), BatchId: job + ".0", Measurement: m, BestSeconds: best,
		PredictedSeconds: float32(latency * (0.9 + float64(trial%7)/30)),
	}}}
}

// visit is a browser that visits pages of a large farm.
type visit struct {
	testing.TB
	ctx context.Context
	url string
}

func (v *visit) number(expression string) int64 {
	v.Helper()
	return int64(must[float64](v)(chromedp.Run(v.ctx, chromedp.Evaluate[float64](expression))))
}

// kept returns the nodes and bytes in use after a garbage collection of the browser.
func (v *visit) kept() (nodes, heap int64) {
	v.Helper()
	must[cdp.Empty](v)(chromedp.Call(v.ctx, heapprofiler.CollectGarbage, cdp.Empty{}))
	counters := must[memory.GetDOMCountersResult](v)(chromedp.Call(v.ctx, memory.GetDOMCounters, cdp.Empty{}))
	usage := must[runtime.GetHeapUsageResult](v)(chromedp.Call(v.ctx, runtime.GetHeapUsage, cdp.Empty{}))
	return counters.Nodes, int64(usage.UsedSize + usage.EmbedderHeapUsedSize)
}

// open opens a page and checks its size.
func (v *visit) open(path string) {
	v.Helper()
	if err := chromedp.Do(v.ctx, chromedp.Navigate(v.url+path), chromedp.WaitVisible(`h1`)); err != nil {
		v.Fatalf("%s: %v", path, err)
	}
	sent := v.number(`performance.getEntriesByType("navigation")[0].decodedBodySize`)
	paint := must[float64](v)(chromedp.Run(v.ctx, chromedp.Evaluate[float64](`new Promise((done) => new PerformanceObserver((list) => {
		const first = list.getEntriesByName("first-contentful-paint")[0];
		if (first) done(first.startTime);
	}).observe({ type: "paint", buffered: true }))`, chromedp.EvalAwaitPromise)))
	pixels := v.number(`document.documentElement.scrollHeight`)
	nodes, heap := v.kept()
	v.Logf("%s: %d bytes, first painted after %.0f ms, %d nodes, %d bytes of memory, %d pixels", path, sent, paint, nodes, heap, pixels)
	if sent > maxPageBytes || nodes > maxNodes || heap > maxHeapBytes || pixels > maxPixels {
		v.Errorf("%s takes %d bytes, %d nodes, %d bytes of memory and %d pixels, at most %d, %d, %d and %d are promised",
			path, sent, nodes, heap, pixels, maxPageBytes, maxNodes, maxHeapBytes, maxPixels)
	}
}

// follow follows a page's link to a page that contains a text.
func (v *visit) follow(path, link, want string) {
	v.Helper()
	v.open(path)
	next := must[string](v)(chromedp.Run(v.ctx, chromedp.Evaluate[string](
		fmt.Sprintf(`[...document.querySelectorAll("main a")].find((a) => a.textContent === %q)?.getAttribute("href") ?? ""`, link))))
	v.open(path + next)
	if text := must[string](v)(chromedp.Run(v.ctx, chromedp.Text(`main`))); !strings.Contains(text, want) {
		v.Errorf("%q of %s leads to %q, which lacks %q", link, path, next, want)
	}
}

// again makes the page's script reload its main part repeatedly. Earlier content is released, except that the browser
// may still hold the last parts.
func (v *visit) again(times int) {
	v.Helper()
	before, _ := v.kept()
	for range times {
		must[bool](v)(chromedp.Run(v.ctx, chromedp.Evaluate[bool](`new Promise((done) => {
			const main = document.querySelector("main");
			new MutationObserver((_, o) => { o.disconnect(); done(true); }).observe(main, { childList: true });
			document.dispatchEvent(new Event("visibilitychange"));
		})`, chromedp.EvalAwaitPromise)))
	}
	if nodes, heap := v.kept(); nodes > before*int64(times)/2 || heap > maxHeapBytes {
		v.Errorf("loaded %d times again, the page has %d nodes, %d before, and %d bytes of memory", times, nodes, before, heap)
	}
}

// TestPagesOfALargeFarmAreBounded visits pages of 10,000 devices and a job with 100,000 trials in a browser.
func TestPagesOfALargeFarmAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it stores 100,000 trials and has 10,000 devices join")
	}
	f := newFarm(t, tracker.Config{})
	trials := []int{61_000}
	for range 39 {
		trials = append(trials, 1000)
	}
	f.storeJob("job-00000001", trials...)
	f.storeJob("job-00000002", make([]int, 4096)...)
	f.stop()
	f.cfg.Registerer = prometheus.NewRegistry() // shown on the first page
	f.start()
	f.joinMany(10_000)
	server := httptest.NewServer(f.tracker.HTTPHandler())
	defer func() {
		server.CloseClientConnections() // event streams would last as long as the browser
		server.Close()
	}()
	ctx, complaints := browser(t)
	limited, cancel := context.WithTimeout(ctx, 10*time.Minute) // detects a hang
	defer cancel()
	if err := chromedp.Do(limited, chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
	v := &visit{t, limited, server.URL}
	const job, wide = "job-00000001", "job-00000002"
	for _, path := range []string{
		"/", "/jobs", "/devices", "/devices?view=board", "/device?name=board-09999", "/records", "/jobs/" + job, "/jobs/" + job + "/tasks/0",
		"/jobs/" + job + "/tasks/39", "/compare?a=" + job + "&b=" + job, "/jobs/" + wide, "/compare?a=" + job + "&b=" + wide,
	} {
		v.open(path)
	}
	v.open("/")
	if text := must[string](t)(chromedp.Run(limited, chromedp.Text(`main`))); !strings.Contains(text, "10000") {
		t.Errorf("the first page does not count the devices:\n%s", text)
	}
	v.follow("/jobs/"+wide, "next tasks", "Tasks 201 to 400 of 4096")
	v.follow("/devices", "More devices", "board-00200")
	v.open("/jobs/" + job + "/tasks/0")
	if text := must[string](t)(chromedp.Run(limited, chromedp.Text(`main`))); !strings.Contains(text, "61000") || strings.Contains(text, "Not all events") {
		t.Errorf("the page of a task with 61000 trials has not read them all:\n%s", text)
	}
	v.again(10)
	if heard := complaints(); len(heard) > 0 {
		t.Errorf("the browser complains: %s", heard)
	}
}
