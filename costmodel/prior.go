// This file embeds the cost models that ship with the program. They let searches on a machine without records start
// from measurements of similar machines.

package costmodel

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
)

// read caches the parsed models by their texts, because parsing takes longer than any prediction.
var (
	mu   sync.Mutex // guards read
	read = map[string]*Model{}
)

// PriorFor returns the model for a target, or nil if its backend does not have one.
func PriorFor(t *target.Target) (*Model, error) {
	b, err := registry.Of(t)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	text := b.Features().Prior(t)
	if text == "" {
		return nil, nil
	}
	mu.Lock()
	defer mu.Unlock()
	if read[text] == nil {
		m, err := Read(strings.NewReader(text), b.Features().Set())
		if err != nil {
			return nil, fmt.Errorf("the model of backend %s: %w", b.Name(), err)
		}
		read[text] = m
	}
	return read[text], nil
}
