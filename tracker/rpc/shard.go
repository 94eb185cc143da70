package rpc

import (
	"github.com/tilth-dev/tilth/internal/wire"
)

// Shard identifies one of several shards. The zero value is the only shard.
type Shard struct{ Index, Count int }

// elsewhere reports whether a job belongs to another shard. Its stored data can be read all the same.
func (s Shard) elsewhere(jobID string) bool { return s.Count > 1 && wire.ShardOf(jobID) != s.Index }

// takes refuses jobs of an owner that belongs to another shard.
func (s Shard) takes(owner string) error {
	if of := wire.ShardOfOwner(owner, s.Count); of != s.Index {
		return wire.RefuseShard(wire.ReasonOtherShard, of, "jobs of owner %q are in shard %d, and this is shard %d", owner, of, s.Index)
	}
	return nil
}
