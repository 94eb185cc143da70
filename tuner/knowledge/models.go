package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
)

// Models says where the model of a history comes from; the zero value has it trained each time.
type Models struct {
	// Given is used as it is, whatever was measured; nil means none.
	Given *costmodel.Model
	// Prior is the model that a history's is made from, and that serves where nothing was measured; nil means none.
	Prior func(*target.Target) (*costmodel.Model, error)
	// Dir keeps the model of each target's latest history, so that it is not trained again while nothing new is
	// measured; empty means no folder. A model in it that another program wrote is used, and left alone.
	Dir string
}

// Use has the history take its model from there. It must be called before the history is used, and returns the
// history.
func (h *History) Use(m Models) *History {
	h.models = m
	return h
}

const (
	// jobTrees, of so many leaves, are added for a job's own trials, of whose tasks they are asked.
	jobTrees, jobLeaves = 40, 15
	// recipe names how models of histories are trained; it changes with that, so that kept ones are trained again.
	recipe = "history 3"
	// addedTrees are what a history adds to a prior.
	addedTrees = 60
)

// jobOptions are those of the trees for a job's samples.
func jobOptions(samples int) costmodel.Options {
	return costmodel.Options{Trees: jobTrees, Leaves: jobLeaves, Loss: costmodel.Latency, Trust: 1, Seed: uint64(samples)}
}

// learnt is the model of all tasks, got when it is first asked for; nil when there is nothing to learn from.
func (h *History) learnt() (*costmodel.Model, error) {
	h.once.Do(func() { h.model, h.err = h.learn() })
	return h.model, h.err
}

func (h *History) learn() (*costmodel.Model, error) {
	if h.models.Given != nil {
		return h.models.Given, nil
	}
	prior, err := h.prior()
	if err != nil {
		return nil, err
	}
	if h.models.Dir == "" {
		return h.train(prior, "")
	}
	digest := h.digest(prior)
	by, err := registry.Of(h.target)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	kept, err := costmodel.Load(h.models.Dir, h.target.Fingerprint(), by.Features().Set())
	switch {
	case err == nil && (kept.Digest() == "" || kept.Digest() == digest):
		return kept, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	m, err := h.train(prior, digest)
	if m != nil && m != prior && err == nil {
		// A folder that cannot be written costs the next job a training, and this one nothing.
		_ = m.Save(h.models.Dir, h.target.Fingerprint())
	}
	return m, err
}

func (h *History) prior() (*costmodel.Model, error) {
	if h.models.Prior == nil {
		return nil, nil
	}
	return h.models.Prior(h.target)
}

// train makes the model of a digest from a prior, which may be nil.
func (h *History) train(prior *costmodel.Model, digest string) (*costmodel.Model, error) {
	samples := h.samples()
	if len(samples) == 0 {
		return prior, nil
	}
	o := costmodel.Options{Seed: 1}
	if prior != nil {
		o.Trees = addedTrees
	}
	m, err := costmodel.Train(context.Background(), prior, samples, o)
	if err != nil {
		return nil, err
	}
	return m.WithDigest(digest), nil
}

// digest is that of all that the model is a function of.
func (h *History) digest(prior *costmodel.Model) string {
	sum := sha256.New()
	fmt.Fprintln(sum, recipe, h.target.Fingerprint())
	if prior != nil {
		_ = prior.Write(sum) // nor does a digest's Write fail
	}
	for _, t := range h.tasks {
		fmt.Fprintln(sum, t.Target.Fingerprint(), t.reads().digest, len(t.Trials))
		for _, trial := range t.Trials {
			_, _ = io.WriteString(sum, trial.Origin) // a digest's Write does not fail
			fmt.Fprintln(sum, "", trial.LatencySeconds)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
