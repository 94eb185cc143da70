package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// MaxShards bounds the shards of a store. Every agent has a session with each.
const MaxShards = 16

// ShardHeader is the header that names the shard of a call.
const ShardHeader = "tilth-shard"

// A store may have several shards. Each has its own jobs, its own generation of the store, and one tracker at a time.
// The names of generations, and so of jobs and batches, contain the shard: shard 0, the only one of most stores, has
// no mark; the others have a mark of two letters.
const (
	GenerationLetters = "abcdefghijklmnopqrstuvwxyz234567"
	generationLength  = 6
	shardMarkSize     = 2
)

// ShardMark returns the prefix of the names of a shard's generations.
func ShardMark(shard int) string {
	if shard == 0 {
		return ""
	}
	return string([]byte{GenerationLetters[shard/len(GenerationLetters)], GenerationLetters[shard%len(GenerationLetters)]})
}

// ShardOf returns the shard of a job or batch ID; 0 if the ID has no mark.
func ShardOf(id string) int {
	job, _, _ := strings.Cut(id, ".")
	_, rest, _ := strings.Cut(job, "-")
	_, generation, _ := strings.Cut(rest, "-")
	if len(generation) != shardMarkSize+generationLength || strings.Trim(generation, GenerationLetters) != "" {
		return 0
	}
	shard := strings.IndexByte(GenerationLetters, generation[0])*len(GenerationLetters) + strings.IndexByte(GenerationLetters, generation[1])
	if shard >= MaxShards {
		return 0
	}
	return shard
}

// ShardOfOwner returns which of the shards has the jobs of an owner. All jobs of an owner are in one shard, so that
// quotas and fair shares are decided in one place. The result is the same in every process and version.
func ShardOfOwner(owner string, shards int) int {
	if shards <= 1 {
		return 0
	}
	sum := sha256.Sum256([]byte(owner))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(shards))
}

// ofNoShard are the methods that concern neither a job nor an agent, but data common to all shards.
var ofNoShard = []string{
	tilthv1.JobService_ListJobs_FullMethodName, tilthv1.JobService_CheckFarm_FullMethodName,
	tilthv1.RecordService_BestRecords_FullMethodName, tilthv1.RecordService_ListRecords_FullMethodName,
	tilthv1.RecordService_ImportRecords_FullMethodName, tilthv1.RecordService_ListRecordGroups_FullMethodName,
	tilthv1.RecordService_ListRecordKeys_FullMethodName, tilthv1.RecordService_FindLackingRecords_FullMethodName,
	tilthv1.RecordService_GetRecords_FullMethodName,
	tilthv1.AdminService_BackupStore_FullMethodName, tilthv1.AdminService_PruneRecords_FullMethodName,
}

// AnyShard reports whether every shard answers a method alike, so that a call need not name one. That holds for all
// methods of foreign services.
func AnyShard(method string) bool {
	return !strings.HasPrefix(method, servicesPrefix) || slices.Contains(ofNoShard, method)
}

// servicesPrefix is the prefix of the tracker's own methods.
const servicesPrefix = "/tilth.v1."
