package schedule

import (
	"strings"
	"testing"
)

const weighted = `tilth-workload 1
input t0 f32[4,20]
input t1 f32[20,6]
map t2 f32[4,20] = (mul [t0 i0 i1] 0x1p-01:f32)
max t3 f32[4] over 20 = [t2 i0 r0]
map t4 f32[4,20] = (exp (sub [t2 i0 i1] [t3 i0]))
sum t5 f32[4,6] over 20 = (mul [t4 i0 r0] [t1 r0 i1])
sum t6 f32[4] over 20 = [t4 i0 r0]
map t7 f32[4,6] = (div [t5 i0 i1] [t6 i0])
output t7
`

// TestSoftmaxGoesPieceByPiece: the sum of products gets two reduction axes, and stages read later are kept.
func TestSoftmaxGoesPieceByPiece(t *testing.T) {
	s := New(parseWorkload(t, weighted))
	made, err := s.Online(3, 8)
	if err != nil {
		t.Fatal(err)
	}
	mixed := s.Stages[3]
	if len(mixed.Reduce) != 2 || mixed.Reduce[0].Extent != 3 || mixed.Reduce[1].Extent != 8 || mixed.Decay == nil {
		t.Errorf("mixed reduces over %v, times %v", mixed.Reduce, mixed.Decay)
	}
	if !s.Stages[1].Inlined || !s.Stages[2].Inlined {
		t.Error("the exponentials of whole rows are still there")
	}
	for _, id := range []int{made.Running, made.Sum} {
		if g := s.Stages[id]; g.Kept != mixed || g.Tensor.Shape[0] != 4 || g.Tensor.Shape[1] != 3 {
			t.Errorf("stage %d is kept by %v, of shape %v", id, g.Kept, g.Tensor.Shape)
		}
	}
	if again, err := Replay(s.Workload, s.Trace()); err != nil || len(again.Stages) != len(s.Stages) {
		t.Errorf("%s is replayed as %v", s.Trace(), err)
	}
}

// TestOnlineRefusals checks the errors for other stages, and for earlier primitives.
func TestOnlineRefusals(t *testing.T) {
	product := strings.Replace(weighted, "(exp (sub [t2 i0 i1] [t3 i0]))", "(sub [t2 i0 i1] [t3 i0])", 1)
	other := strings.Replace(weighted, "[t2 i0 r0]\nmap", "[t0 i0 r0]\nmap", 1)
	prefix := strings.Replace(weighted, "sum t6 f32[4] over 20", "sum t6 f32[4] over 19", 1)
	shorter := strings.NewReplacer("sum t5 f32[4,6] over 20", "sum t5 f32[4,6] over 19", "t1 f32[20,6]", "t1 f32[19,6]").Replace(weighted)
	read := strings.Replace(weighted, "(div [t5 i0 i1] [t6 i0])", "(div [t5 i0 i1] (add [t6 i0] [t3 i0]))", 1)
	for _, c := range []struct{ workload, trace, want string }{
		{weighted, "online 4 8", "not a sum of products with a softmax"},
		{product, "online 3 8", "not a sum of products with a softmax"},
		{other, "online 3 8", "not a sum of products with a softmax"},
		{prefix, "online 3 8", "not a sum of products with a softmax"},
		{shorter, "online 3 8", "not a sum of products with a softmax"},
		{read, "online 3 8", "not a sum of products with a softmax"},
		{weighted, "online 3 0", "not between 1 and the 20 terms"},
		{weighted, "online 3 21", "not between 1 and the 20 terms"},
		{weighted, "split 4 0 2 0\nonline 3 8", "already scheduled"},
		{weighted, "online 3 8\nonline 3 8", "not a sum of products with a softmax"},
		{weighted, "online 3 8\nrfactor 3 1 2 0", "already scheduled"},
		{weighted, "online 3 8\ncache-write 3", "already scheduled"},
		{weighted, "online 3 8\ninline 10", "is the decay of another stage"},
		{weighted, "online 3 8\ncompute-at 3 5 0\ncompute-at 7 3 1", "by the loop over the first reduction axis"},
		{weighted, "online 3 8\ncompute-at 3 5 0\ncompute-at 8 3 2", "also used by"},
		{weighted, "split 3 2 8 2", "neither an axis of its results"},
	} {
		if _, err := Replay(parseWorkload(t, c.workload), []byte(traceHeader+"\n"+c.trace+"\n")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.trace, err, c.want)
		}
	}
}
