package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestMain lets this binary be the server's process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveArgument {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestEveryVariantCarriesWork(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			server, err := start(t.Context(), orders{Way: v.way, Opaque: v.opaque})
			if err != nil {
				t.Fatal(err)
			}
			ctx, f, err := v.begin(t.Context(), server.addr, 20, 320)
			if err != nil {
				t.Fatal(err)
			}
			f.meter.set(true)
			for f.meter.brought() == 0 && retry.Sleep(ctx, time.Millisecond) == nil {
			}
			if err := context.Cause(ctx); err != nil {
				t.Error(err)
			}
			if err := errors.Join(f.end(), server.stop()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARunTellsWhatTheServerTakes(t *testing.T) {
	o := options{devices: 5, rate: 100, warmup: time.Millisecond, time: 100 * time.Millisecond, profile: filepath.Join(t.TempDir(), "pprof")}
	r, err := o.measure(t.Context(), variants[0])
	if err != nil {
		t.Fatal(err)
	}
	if u := r.after; u.CPU < r.before.CPU || u.PeakRSSBytes == 0 || u.Goroutines < 5 || u.StackBytes == 0 || u.Objects == 0 {
		t.Errorf("the server took %+v, and before that %+v", u, r.before)
	}
	if profile, err := os.Stat(o.profile); err != nil || profile.Size() == 0 {
		t.Errorf("no profile: %v", err)
	}
	if columns := strings.Count(r.row(), "|"); columns != strings.Count(strings.SplitN(heading, "\n", 2)[0], "|") {
		t.Errorf("the row has %d bars: %s", columns, r.row())
	}
}

func TestWorkGoesToWhoWaitsLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		var got []string
		ask := func(who string, wait time.Duration) { l.ask(wait, func(work string) { got = append(got, who+work) }) }
		l.put("1")
		ask("a", time.Minute)
		ask("late", time.Second)
		ask("b", time.Minute)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		ask("c", time.Minute)
		l.put("2")
		l.put("3")
		want := []string{"a1", "late", "b2", "c3"}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestTheOpaqueCodecDecodesTheLeaseAlone(t *testing.T) {
	text, err := proto.Marshal(&tilthv1.ProposeBatchRequest{Lease: &tilthv1.LeaseToken{Subject: "s"}, Candidates: candidates(true)})
	if err != nil {
		t.Fatal(err)
	}
	var got tilthv1.ProposeBatchRequest
	half := len(text) / 2
	data := mem.BufferSlice{mem.SliceBuffer(text[:half]), mem.SliceBuffer(text[half:])}
	if err := newOpaque().Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.GetLease().GetSubject() != "s" || len(got.GetCandidates()) != 0 {
		t.Errorf("got %v", &got)
	}
	if err := newOpaque().Unmarshal(mem.BufferSlice{mem.SliceBuffer(make([]byte, opaqueBytes))}, &got); err == nil {
		t.Error("what is no message is taken for one")
	}
}

func TestWorkThatIsEncodedBeforehandReadsTheSame(t *testing.T) {
	lease := func(encoded bool) *tilthv1.LeaseWorkResponse {
		tracker, err := newTracker(encoded)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		tracker.builders.put("b")
		tracker.lease(&tilthv1.LeaseWorkRequest{Session: builder.name}, func(r *tilthv1.LeaseWorkResponse) { text, err = proto.Marshal(r) })
		if err != nil {
			t.Fatal(err)
		}
		var work tilthv1.LeaseWorkResponse
		if err := proto.Unmarshal(text, &work); err != nil {
			t.Fatal(err)
		}
		return &work
	}
	if now, before := lease(false), lease(true); !proto.Equal(now, before) || before.GetLease().GetSubject() != "b" {
		t.Errorf("%v differs from %v", before, now)
	}
}

func TestUnknownVariantsAreNamed(t *testing.T) {
	if _, err := chosen("grpc,smoke"); err == nil || err.Error() != `there is no variant "smoke": choose from grpc,http,stream,opaque,silent,shared-10,shared-100,lean` {
		t.Errorf("said %v", err)
	}
}

func TestQuantile(t *testing.T) {
	times := []time.Duration{4, 1, 3, 2}
	if m, last, none := quantile(times, 0.5), quantile(times, 0.99), quantile(nil, 0.5); m != 3 || last != 4 || none != 0 {
		t.Errorf("got %d, %d and %d", m, last, none)
	}
}
