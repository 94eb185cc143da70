package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// MostShards bounds the shards of a store. Every agent has a session with each.
const MostShards = 16

// ShardHeader is the header of a call that says which shard it is for.
const ShardHeader = "tilth-shard"

// A store may have several shards, of which each has jobs of its own, a life of its own, and one tracker at a time.
// The names of lives, and so of jobs and batches, tell the shard: those of shard 0, which is the only one of most
// stores, are as they always were, and those of others are longer by a mark of two letters.
const (
	LifeLetters   = "abcdefghijklmnopqrstuvwxyz234567"
	lifeLength    = 6
	shardMarkSize = 2
)

// ShardMark begins the names of a shard's lives.
func ShardMark(shard int) string {
	if shard == 0 {
		return ""
	}
	return string([]byte{LifeLetters[shard/len(LifeLetters)], LifeLetters[shard%len(LifeLetters)]})
}

// ShardOf is the shard of a job or a batch, by its id. That of an id which tells none is 0.
func ShardOf(id string) int {
	job, _, _ := strings.Cut(id, ".")
	_, rest, _ := strings.Cut(job, "-")
	_, life, _ := strings.Cut(rest, "-")
	if len(life) != shardMarkSize+lifeLength || strings.Trim(life, LifeLetters) != "" {
		return 0
	}
	shard := strings.IndexByte(LifeLetters, life[0])*len(LifeLetters) + strings.IndexByte(LifeLetters, life[1])
	if shard >= MostShards {
		return 0
	}
	return shard
}

// ShardOfOwner is the shard, of so many, that an owner's jobs are in: all in one, so that what owners may have, and
// whose turn it is, is decided in one place. It is the same in every process, of every version.
func ShardOfOwner(owner string, shards int) int {
	if shards <= 1 {
		return 0
	}
	sum := sha256.Sum256([]byte(owner))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(shards))
}

// ofNoShard are the methods that are about no job and no agent: all that they concern is common to the shards.
var ofNoShard = []string{
	tilthv1.JobService_ListJobs_FullMethodName, tilthv1.JobService_CheckFarm_FullMethodName,
	tilthv1.RecordService_BestRecords_FullMethodName, tilthv1.RecordService_ListRecords_FullMethodName,
	tilthv1.RecordService_ImportRecords_FullMethodName, tilthv1.RecordService_ListRecordGroups_FullMethodName,
	tilthv1.RecordService_ListRecordKeys_FullMethodName, tilthv1.RecordService_FindLackingRecords_FullMethodName,
	tilthv1.RecordService_GetRecords_FullMethodName,
	tilthv1.AdminService_BackupStore_FullMethodName, tilthv1.AdminService_PruneRecords_FullMethodName,
}

// AnyShard says whether a method is answered alike by every shard, so that a call of it need not name one. Those of
// other services than the tracker's own are.
func AnyShard(method string) bool {
	return !strings.HasPrefix(method, servicesPrefix) || slices.Contains(ofNoShard, method)
}

// servicesPrefix begins the methods of the tracker's own services.
const servicesPrefix = "/tilth.v1."
