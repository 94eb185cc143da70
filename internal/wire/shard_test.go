package wire_test

import (
	"fmt"
	"testing"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func TestIDsTellTheirShard(t *testing.T) {
	for shard := range wire.MaxShards {
		life := wire.ShardMark(shard) + "abc234"
		for _, id := range []string{"job-00000007-" + life, "job-00000007-" + life + ".00000001", "job-00000007-" + life + ".00000001-" + wire.ShardMark(3) + "zzzzzz"} {
			if got := wire.ShardOf(id); got != shard {
				t.Errorf("%s is of shard %d, want %d", id, got, shard)
			}
		}
	}
	for _, id := range []string{"", "job-00000007", "job-00000007-abcdef", "job-00000007.00000002-abcdefgh", "job-1-ABCDEFGH", "what-ever-abcdefghi"} {
		if got := wire.ShardOf(id); got != 0 {
			t.Errorf("%q is of shard %d, want 0", id, got)
		}
	}
}

func TestOwnersAreSpreadOverTheShards(t *testing.T) {
	const shards, owners = 4, 4000
	var count [shards]int
	for i := range owners {
		count[wire.ShardOfOwner(fmt.Sprint("team-", i), shards)]++
	}
	for shard, n := range count {
		if n < owners/shards*8/10 || n > owners/shards*12/10 {
			t.Errorf("shard %d has %d of %d owners", shard, n, owners)
		}
	}
	if wire.ShardOfOwner("ana", 1) != 0 || wire.ShardOfOwner("ana", 0) != 0 {
		t.Error("there is one shard only")
	}
}

func TestSomeCallsGoToAnyShard(t *testing.T) {
	for method, want := range map[string]bool{
		tilthv1.RecordService_ListRecordGroups_FullMethodName: true, tilthv1.JobService_ListJobs_FullMethodName: true,
		"/grpc.health.v1.Health/Watch":             true,
		tilthv1.JobService_WatchJob_FullMethodName: false, tilthv1.JobService_ListOwners_FullMethodName: false,
		tilthv1.DeviceService_CordonDevice_FullMethodName: false, tilthv1.AgentService_Join_FullMethodName: false,
	} {
		if got := wire.AnyShard(method); got != want {
			t.Errorf("%s goes to any shard: %v, want %v", method, got, want)
		}
	}
}
