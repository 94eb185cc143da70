package transfer

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

// Models provides the model of a history. The zero value trains it each time.
type Models struct {
	// Given, if set, is used instead of training.
	Given *costmodel.Model
	// Prior, if set, returns the model that training starts from and that is used without measurements. It
	// may return nil.
	Prior func(*target.Target) (*costmodel.Model, error)
	// Dir is a folder that caches the model of each target's latest history, or empty. A model that another
	// program put there is used and never overwritten.
	Dir string
}

// Use sets the source of the history's model and returns the history. It must be called before the history is used.
func (h *History) Use(m Models) *History {
	h.models = m
	return h
}

const (
	// jobTrees trees with jobLeaves leaves are added for a job's own trials.
	jobTrees, jobLeaves = 40, 15
	// recipe identifies the training procedure. Change it with the procedure, so that cached models are trained again.
	recipe = "history 3"
	// addedTrees is the number of trees that a history adds to a prior.
	addedTrees = 60
)

// jobOptions returns the training options for a job's own samples.
func jobOptions(samples int) costmodel.Options {
	return costmodel.Options{Trees: jobTrees, Leaves: jobLeaves, Loss: costmodel.Latency, Trust: 1, Seed: uint64(samples)}
}

// learnt returns the model of all tasks, trained on first use. It returns nil if there is nothing to learn from.
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
		// If the folder cannot be written, the next job trains the model again.
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

// train trains the model with the given digest, starting from a prior, which may be nil.
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

// digest returns the digest of all inputs of the training.
func (h *History) digest(prior *costmodel.Model) string {
	sum := sha256.New()
	fmt.Fprintln(sum, recipe, h.target.Fingerprint())
	if prior != nil {
		_ = prior.Write(sum) // writing to a digest does not fail
	}
	for _, t := range h.tasks {
		fmt.Fprintln(sum, t.Target.Fingerprint(), t.derive().digest, len(t.Trials))
		for _, trial := range t.Trials {
			_, _ = io.WriteString(sum, trial.Origin) // writing to a digest does not fail
			fmt.Fprintln(sum, "", trial.LatencySeconds)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
