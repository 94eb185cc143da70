package agent

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestIdleAgentsWaitInAnotherOrderAtEachShard is a regression test: agents that waited in the same order at all
// shards got leases from several at once and returned all but one.
func TestIdleAgentsWaitInAnotherOrderAtEachShard(t *testing.T) {
	const n, agents = 2, 50
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ends := [agents][n]time.Duration{} // end of each agent's first wait, by shard
		begin := time.Now()
		var all sync.WaitGroup
		for agent := range agents {
			c := &sharded{shards: &shards{}, n: n, reply: &tilthv1.LeaseWorkResponse{}, do: func(ctx context.Context, _ string, req, _ any) error {
				wait := req.(*tilthv1.LeaseWorkRequest).GetWait().AsDuration()
				if wait > longestAsk {
					t.Errorf("an agent waits for %v", wait)
				}
				time.Sleep(wait)
				mu.Lock()
				defer mu.Unlock()
				if first := &ends[agent][shardIn(ctx)]; *first == 0 {
					*first = time.Since(begin)
				}
				return nil
			}}
			all.Go(func() {
				if err := c.call(t.Context(), &tilthv1.LeaseWorkRequest{Session: "a.b", Wait: durationpb.New(3 * longestAsk)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took < 3*longestAsk {
			t.Errorf("the agents have given up after %v", took)
		}
		alike := 0 // pairs of agents in the same order at both shards
		for i := range agents {
			for j := range i {
				if (ends[i][0] < ends[j][0]) == (ends[i][1] < ends[j][1]) {
					alike++
				}
			}
		}
		if pairs := agents * (agents - 1) / 2; alike < pairs/4 || alike > 3*pairs/4 {
			t.Errorf("%d of %d pairs of agents wait in one order at both shards", alike, pairs)
		}
	})
}
