package records

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// MostShards bounds the shards of a store. Every agent has a session with each.
const MostShards = 16

const (
	lifeAlphabet = "abcdefghijklmnopqrstuvwxyz234567"
	// shardLetters are how many letters say the shard in the name of a life.
	shardLetters = 2
)

// A store may have several shards, of which each has jobs of its own, a life of its own, and one tracker at a time.
// The records are common to all. The names of a life, and so of its jobs and batches, tell the shard: those of shard
// 0, which is the only one of most stores, are as they always were, and those of others are longer by two letters.

// NewLifeOf draws the name of a life of a shard.
func NewLifeOf(shard int) string {
	if shard == 0 {
		return NewLife()
	}
	return string([]byte{lifeAlphabet[shard/len(lifeAlphabet)], lifeAlphabet[shard%len(lifeAlphabet)]}) + NewLife()
}

// ShardOf is the shard of a job or a batch, by its id. That of an id which tells none is 0.
func ShardOf(id string) int {
	job, _, _ := strings.Cut(id, ".")
	_, rest, _ := strings.Cut(job, "-")
	_, life, _ := strings.Cut(rest, "-")
	if len(life) != shardLetters+lifeLetters || !IsLife(life) {
		return 0
	}
	return strings.IndexByte(lifeAlphabet, life[0])*len(lifeAlphabet) + strings.IndexByte(lifeAlphabet, life[1])
}

// ShardOfOwner is the shard, of so many, that an owner's jobs are in: all in one, so that what owners may have, and
// whose turn it is, is decided in one place.
func ShardOfOwner(owner string, shards int) int {
	if shards <= 1 {
		return 0
	}
	return int(ownerHash(owner) % uint64(shards))
}

// ownerHash is the beginning of the sha256 of an owner's name: the same in every process, of every version.
func ownerHash(owner string) uint64 {
	sum := sha256.Sum256([]byte(owner))
	return binary.BigEndian.Uint64(sum[:8])
}
