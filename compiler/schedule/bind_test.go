package schedule

import (
	"strings"
	"testing"
)

const reduced = `tilth-workload 1
input t0 f32[8,64]
sum t1 f32[8] over 64 = [t0 i0 r0]
map t2 f32[8,64] = (sub [t0 i0 i1] [t1 i0])
output t2
`

// TestBindingsAreReplayed replays bindings from their trace.
func TestBindingsAreReplayed(t *testing.T) {
	s := New(parseWorkload(t, reduced))
	for _, err := range []error{
		s.Bind(1, 0, BlockLevel), s.Bind(1, 1, ThreadLevel), s.ComputeAt(0, 1, 0), s.SetScope(0, Shared),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	again, err := Replay(s.Workload, s.Trace())
	if err != nil || string(again.Trace()) != string(s.Trace()) || again.Stages[0].Scope != Shared || again.Stages[1].Leaves[1].Kind != Thread {
		t.Errorf("%s is replayed as %v, %v", s.Trace(), again, err)
	}
}

// TestBindingIsRefusedWhereThreadsWouldMeet checks the reasons for refusal.
func TestBindingIsRefusedWhereThreadsWouldMeet(t *testing.T) {
	for trace, want := range map[string]string{
		"bind 0 1 1":                             "is a reduction",
		"bind 1 0 0\nbind 1 1 0":                 "already has an iterator of that level",
		"bind 1 0 1\nbind 1 0 0":                 "already annotated",
		"bind 1 0 7":                             "not a level",
		"split 1 1 48 1\nbind 1 2 1":             "shifted tile",
		"bind 1 0 1\nsplit 1 1 48 1":             "cannot overlap",
		"compute-at 0 1 0\nbind 0 0 0":           "shares",
		"bind 0 0 0\ncompute-at 0 1 0":           "blocks of its own",
		"scope 0 1":                              "in global memory",
		"compute-at 0 1 0\nscope 0 9":            "not a scope",
		"compute-at 0 1 0\nscope 0 1\nscope 0 2": "already has one",
		"bind 1 0 999999":                        "not a level",
	} {
		if _, err := Replay(parseWorkload(t, reduced), []byte(traceHeader+"\n"+trace+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", trace, err, want)
		}
	}
}

// TestPipelineIsForSharedCopies checks copies in shared memory that a loop over a reduction reads.
func TestPipelineIsForSharedCopies(t *testing.T) {
	const product = `tilth-workload 1
input t0 f32[8,64]
input t1 f32[64,8]
input t2 i8[64]
map t3 f32[64,8] = (add [t1 i0 i1] (cast f32 [t2 i0]))
sum t4 f32[8,8] over 64 = (mul [t0 i0 r0] [t3 r0 i1])
output t4
`
	for trace, want := range map[string]string{
		"cache-read 1 0 0 1\ncompute-at 2 1 2\nscope 2 1\npipeline 2 3":               "",
		"cache-read 1 0 0 1\ncompute-at 2 1 2\npipeline 2 3":                          "is not in shared memory",
		"cache-read 1 0 0 1\ncompute-at 2 1 2\nscope 2 1\npipeline 2 1":               "are not between 2 and",
		"cache-read 1 0 0 1\ncompute-at 2 1 2\nscope 2 1\npipeline 2 2\npipeline 2 2": "has one already",
		"cache-read 1 0 0 1\ncompute-at 2 1 0\nscope 2 1\npipeline 2 2":               "not computed in a loop over a reduction",
		"compute-at 0 1 2\nscope 0 1\npipeline 0 2":                                   "is not a copy",
	} {
		_, err := Replay(parseWorkload(t, product), []byte(traceHeader+"\n"+trace+"\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", trace, err, want)
		}
	}
}

// TestScalarsCannotBeCopiedByIndex: a stage may broadcast a scalar to a tensor.
func TestScalarsCannotBeCopiedByIndex(t *testing.T) {
	const spread = `tilth-workload 1
input t0 f32[8,64]
input t1 f32[]
map t2 f32[64] = [t1]
sum t3 f32[8] over 64 = (mul [t0 i0 r0] [t2 r0])
output t3
`
	if _, err := Replay(parseWorkload(t, spread), []byte(traceHeader+"\ncompute-at 0 1 1\nscope 0 1\npipeline 0 2\n")); err != nil {
		t.Error(err)
	}
}

// TestShuffleRequiresAWholeReduction checks that a shuffle combines a whole reduction of another stage.
func TestShuffleRequiresAWholeReduction(t *testing.T) {
	const partial = "rfactor 0 0 32 0\n"
	for trace, want := range map[string]string{
		partial + "shuffle 0 1":                "",
		"shuffle 0 1":                          "does not combine",
		partial + "shuffle 0 0":                "is not all of its reduction",
		partial + "split 0 1 8 0\nshuffle 0 3": "is not all of its reduction",
		partial + "unroll 0 1\nshuffle 0 1":    "already annotated",
		"shuffle 9 0":                          "no stage 9",
	} {
		_, err := Replay(parseWorkload(t, reduced), []byte(traceHeader+"\n"+trace+"\n"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", trace, err, want)
		}
	}
}
