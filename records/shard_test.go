package records_test

import (
	"fmt"
	"testing"

	"github.com/tilth-dev/tilth/records"
)

func TestIDsTellTheirShard(t *testing.T) {
	for shard := range records.MostShards {
		life := records.NewLifeOf(shard)
		if !records.IsLife(life) {
			t.Errorf("%q is no name of a life", life)
		}
		for _, id := range []string{"job-00000007-" + life, "job-00000007-" + life + ".00000001", "job-00000007-" + life + ".00000001-" + records.NewLifeOf(3)} {
			if got := records.ShardOf(id); got != shard {
				t.Errorf("%s is of shard %d, want %d", id, got, shard)
			}
		}
	}
	for _, id := range []string{"", "job-00000007", "job-00000007-abcdef", "job-00000007.00000002-abcdefgh", "job-1-ABCDEFGH", "what-ever-abcdefghi"} {
		if got := records.ShardOf(id); got != 0 {
			t.Errorf("%q is of shard %d, want 0", id, got)
		}
	}
}

func TestOwnersAreSpreadOverTheShards(t *testing.T) {
	const shards, owners = 4, 4000
	var count [shards]int
	for i := range owners {
		count[records.ShardOfOwner(fmt.Sprint("team-", i), shards)]++
	}
	for shard, n := range count {
		if n < owners/shards*8/10 || n > owners/shards*12/10 {
			t.Errorf("shard %d has %d of %d owners", shard, n, owners)
		}
	}
	if records.ShardOfOwner("ana", 1) != 0 || records.ShardOfOwner("ana", 0) != 0 {
		t.Error("there is one shard only")
	}
}
