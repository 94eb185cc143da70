package services

import (
	"github.com/tilth-dev/tilth/internal/wire"
)

// Shard says which of how many shards services are of. The zero value is the only one.
type Shard struct{ Index, Count int }

// elsewhere says whether a job is in another shard. What is stored of it is told all the same.
func (s Shard) elsewhere(jobID string) bool { return s.Count > 1 && wire.ShardOf(jobID) != s.Index }

// takes refuses a job of an owner whose jobs are in another shard.
func (s Shard) takes(owner string) error {
	if of := wire.ShardOfOwner(owner, s.Count); of != s.Index {
		return wire.RefuseShard(wire.ReasonOtherShard, of, "jobs of owner %q are in shard %d, and this is shard %d", owner, of, s.Index)
	}
	return nil
}
