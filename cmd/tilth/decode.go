package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
)

// decodeResult is the result of decoding.
type decodeResult struct {
	// Tokens holds the tokens of each sequence of the batch, in order.
	Tokens [][]int64 `json:"tokens"`
	// Positions is the number of positions of the first execution, which took PrefillSeconds.
	Positions      int64   `json:"prefill_positions"`
	PrefillSeconds float64 `json:"prefill_s"`
	// TokenSeconds is the median time per token.
	TokenSeconds    float64 `json:"token_s"`
	TokensPerSecond float64 `json:"tokens_per_s"`
}

// Inputs and output of a decoder, named by Hugging Face's exporter.
const (
	tokenInput, positionInput, maskInput = "input_ids", "position_ids", "attention_mask"
	scoreOutput                          = "logits"
)

// decoder generates tokens greedily.
type decoder struct {
	model *aot.Model
	// given holds the inputs of the last execution. Inputs independent of positions stay.
	given map[string]*array.Array
	batch int64
}

// newDecoder checks that a model has the expected inputs and outputs.
func newDecoder(m *aot.Model, given map[string]*array.Array) (*decoder, error) {
	manifest := m.Manifest()
	if manifest.Decoding == nil {
		return nil, fmt.Errorf("--decode: no output of the package continues an input: compile a model with past keys and values by 'tilth compile --shape sequence=1..32,past=0..511'")
	}
	tokens := given[tokenInput]
	if tokens == nil || tokens.DType != array.Int64 || len(tokens.Shape) != 2 {
		return nil, fmt.Errorf("--decode: the model has no input %s of i64[batch positions]: rename the input", tokenInput)
	}
	for _, name := range []string{positionInput, maskInput} {
		if a := given[name]; a != nil && (len(a.Shape) != 2 || a.Shape[0] != tokens.Shape[0] || a.Shape[1] < 1) {
			return nil, fmt.Errorf("--decode: input %s is %v%v, want [batch positions]", name, a.DType, a.Shape)
		}
	}
	for _, o := range manifest.Outputs {
		if o.Name == scoreOutput && o.Type().IsFloat() && len(o.Shape) == 3 && o.Shape[2] > 0 {
			return &decoder{model: m, given: maps.Clone(given), batch: tokens.Shape[0]}, nil
		}
	}
	return nil, fmt.Errorf("--decode: the model has no output %s of [batch positions words]: rename the output", scoreOutput)
}

// likeliest returns the tokens with the highest scores after the last position, one per sequence.
func (d *decoder) likeliest() ([]int64, error) {
	scores := d.model.Output(scoreOutput)
	positions, words := scores.Shape[1], scores.Shape[2]
	if positions < 1 || scores.Shape[0] != d.batch {
		return nil, fmt.Errorf("--decode: output %s is %v for a batch of %d", scoreOutput, scores.Shape, d.batch)
	}
	tokens := make([]int64, d.batch)
	for b := range d.batch {
		row := (b*positions + positions - 1) * words
		for w := range words {
			if scores.Float(row+w) > scores.Float(row+tokens[b]) {
				tokens[b] = w
			}
		}
	}
	return tokens, nil
}

// next returns the inputs for one more position.
func (d *decoder) next(tokens []int64) (map[string]*array.Array, error) {
	manifest := d.model.Manifest()
	inputs := map[string]*array.Array{}
	for _, t := range manifest.Fresh() {
		switch {
		case t.Name == tokenInput:
			d.given[t.Name] = array.FromInt64(tokens, d.batch, 1)
		case t.Name == positionInput:
			d.given[t.Name] = followed(d.given[t.Name], 0, func(last float64) float64 { return last + 1 })
		case t.Name == maskInput:
			d.given[t.Name] = followed(d.given[t.Name], d.given[t.Name].Shape[1], func(float64) float64 { return 1 })
		case t.VariesBy(manifest.Decoding.Past) || t.VariesBy(manifest.Decoding.Step):
			return nil, fmt.Errorf("--decode: input %q varies with positions, but only %s, %s and %s are supported",
				t.Name, tokenInput, positionInput, maskInput)
		}
		inputs[t.Name] = d.given[t.Name]
	}
	return inputs, nil
}

// followed returns the first kept positions of a [batch positions] array, followed by next applied to the
// last value of each row.
func followed(a *array.Array, kept int64, next func(last float64) float64) *array.Array {
	batch, positions := a.Shape[0], a.Shape[1]
	longer := array.New(a.DType, batch, kept+1)
	for b := range batch {
		for k := range kept {
			longer.SetFloat(b*(kept+1)+k, a.Float(b*positions+k))
		}
		longer.SetFloat(b*(kept+1)+kept, next(a.Float(b*positions+positions-1)))
	}
	return longer
}

// step generates one token per sequence and returns the seconds that it took.
func (d *decoder) step() (tokens []int64, seconds float64, err error) {
	if tokens, err = d.likeliest(); err != nil {
		return nil, 0, err
	}
	inputs, err := d.next(tokens)
	if err != nil {
		return nil, 0, err
	}
	if err := d.model.Continue(inputs); err != nil {
		return nil, 0, err
	}
	seconds, err = timed(d.model)
	return tokens, seconds, err
}

// timed executes a model once.
func timed(m *aot.Model) (seconds float64, err error) {
	began := time.Now()
	err = m.Execute()
	return time.Since(began).Seconds(), err
}

// decodeTokens generates the requested number of tokens with a model that ran once on the given inputs.
func (r *runCommand) decodeTokens(ctx context.Context, m *aot.Model, given map[string]*array.Array) (*decodeResult, error) {
	d, err := newDecoder(m, given)
	if err != nil {
		return nil, err
	}
	release, err := r.machine.time(ctx, r.farm.log.logger(r.stderr))
	if err != nil {
		return nil, err
	}
	defer release()
	prefill, err := timed(m) // again, with warm memory
	if err != nil {
		return nil, err
	}
	result := &decodeResult{Tokens: make([][]int64, d.batch), Positions: m.Extents()[m.Manifest().Decoding.Step], PrefillSeconds: prefill}
	var samples []float64
	for range r.decode {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		tokens, seconds, err := d.step()
		if err != nil {
			return nil, err
		}
		for b, token := range tokens {
			result.Tokens[b] = append(result.Tokens[b], token)
		}
		samples = append(samples, seconds)
	}
	median := stats.Of(samples).Median
	result.TokenSeconds, result.TokensPerSecond = median, 1/median
	return result, nil
}

// write prints the tokens, one line per sequence, and the times.
func (d *decodeResult) write(r *runCommand) error {
	for _, tokens := range d.Tokens {
		fmt.Fprintln(r.stdout, strings.Trim(fmt.Sprint(tokens), "[]"))
	}
	table := humanize.NewTable("", ">POSITIONS", ">MS", ">POSITIONS/S")
	table.Row("prefill", fmt.Sprint(d.Positions), fmt.Sprintf("%.3f", 1e3*d.PrefillSeconds), fmt.Sprintf("%.1f", float64(d.Positions)/d.PrefillSeconds))
	table.Row("decode", fmt.Sprint(len(d.Tokens[0])), fmt.Sprintf("%.3f each", 1e3*d.TokenSeconds), fmt.Sprintf("%.1f", d.TokensPerSecond))
	return table.Write(r.stdout)
}
