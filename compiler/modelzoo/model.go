package modelzoo

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// Options are the variations of a model. Zero values mean the default.
type Options struct {
	// Batch is the number of images, or of sequences; 1 by default.
	Batch int64
	// Seq is the number of tokens of a text model; 128 by default, 35 for the lstm.
	Seq int64
	// Seed chooses the weights.
	Seed uint64
	// Open leaves the batch and the number of tokens open, as the symbols batch and sequence, without fixed values
	// anywhere in the model.
	Open bool
	// Past gives a decoder keys and values of earlier tokens as inputs, and those of all tokens as outputs. The
	// batch, the number of tokens and that of the past are open, as the symbols batch, sequence and past.
	Past bool
	// Fused writes attention with its rotations, and normalisation, as operators of ONNX Runtime, as its model
	// builder does; for a llama with a past.
	Fused bool
	// Last restricts a decoder's scores to the token after the last one.
	Last bool
	// Quantise quantises an image network to bytes, like tools for static quantisation.
	Quantise bool
	// Bits is 4 or 8 for a text model with block-quantised weights of that width in products; 0 for floats.
	Bits int64
}

// Description is an entry of the list of models.
type Description struct {
	Name string `json:"name"`
	// About describes the layers and their publication.
	About string `json:"about"`
	// Seq is the default number of tokens; 0 for a model that reads no text.
	Seq int64 `json:"seq,omitempty"`
}

const (
	irVersion = 8
	maxBatch  = 1 << 16
)

// List describes the built-in models in alphabetical order.
func List() []Description {
	list := make([]Description, len(networks))
	for k, n := range networks {
		list[k] = n.Description
	}
	return list
}

// Names lists the built-in models in alphabetical order.
func Names() []string {
	names := make([]string, len(networks))
	for k, n := range networks {
		names[k] = n.Name
	}
	return names
}

// Build returns a built-in model in memory.
func Build(name string, o Options) (*onnx.Model, error) {
	m, b, err := assemble(name, o)
	if err != nil {
		return nil, err
	}
	b.materialise()
	switch {
	case o.Quantise:
		quantise(m)
	case o.Bits > 0:
		quantiseBlocks(m, o.Bits)
	}
	return m, nil
}

// Write writes a built-in model as an ONNX file and returns its size in bytes. It generates weights while writing.
func Write(w io.Writer, name string, o Options) (int64, error) {
	if o.Quantise || o.Bits > 0 { // these need the weights
		m, err := Build(name, o)
		if err != nil {
			return 0, err
		}
		return m.WriteTo(w)
	}
	m, _, err := assemble(name, o)
	if err != nil {
		return 0, err
	}
	return m.WriteTo(w)
}

// Check returns an error if a name or the options are invalid.
func Check(name string, o Options) error {
	_, err := find(name, o)
	return err
}

func find(name string, o Options) (*network, error) {
	k := slices.IndexFunc(networks, func(n network) bool { return n.Name == name })
	if k < 0 {
		return nil, fmt.Errorf("there is no built-in model %q%s 'tilth model' lists all", name, cmp.Or(humanize.DidYouMean("", name, Names()), ":"))
	}
	n := &networks[k]
	switch {
	case o.Batch < 0 || o.Batch > maxBatch:
		return nil, fmt.Errorf("batch %d is outside 1 to %d", o.Batch, maxBatch)
	case o.Open && !n.opens():
		return nil, fmt.Errorf("%s has its batch in the model: it cannot stay open", name)
	case (o.Past || o.Last) && !n.isDecoder():
		return nil, fmt.Errorf("%s is not a decoder: it has no past and no last token", name)
	case o.Fused && (!o.Past || !n.isLlama()):
		return nil, fmt.Errorf("only a llama with a past has fused operators")
	case (o.Open || o.Past) && (o.Batch > 1 || o.Seq != 0):
		return nil, fmt.Errorf("the batch and the number of tokens are either open or given")
	case o.Quantise && n.Seq != 0:
		return nil, fmt.Errorf("%s reads text: only networks for images are quantised", name)
	case o.Bits != 0 && n.Seq == 0:
		return nil, fmt.Errorf("%s reads no text: only weights of models that do are quantised by blocks", name)
	case o.Bits != 0 && o.Bits != 4 && o.Bits != 8:
		return nil, fmt.Errorf("weights of %d bits: want 4 or 8", o.Bits)
	case o.Seq != 0 && n.Seq == 0:
		return nil, fmt.Errorf("%s reads no text and takes no number of tokens", name)
	case o.Seq < 0 || o.Seq > n.maxSeq:
		return nil, fmt.Errorf("%d tokens are outside 1 to %d, which %s reads", o.Seq, n.maxSeq, name)
	}
	return n, nil
}

// assemble returns a model whose weights have no elements yet.
func assemble(name string, o Options) (*onnx.Model, *builder, error) {
	n, err := find(name, o)
	if err != nil {
		return nil, nil, err
	}
	s := size{batch: max(1, o.Batch), seq: o.Seq, max: n.maxSeq, past: o.Past, fused: o.Fused, last: o.Last}
	s.seq = cmp.Or(s.seq, n.Seq)
	b := newBuilder(name, o.Seed)
	b.open = o.Open || o.Past
	n.build(b, s)
	m := &onnx.Model{IRVersion: irVersion, ProducerName: "tilth", Opsets: []onnx.Opset{{Version: n.opset}}, Graph: b.graph}
	if o.Fused {
		m.Opsets = append(m.Opsets, onnx.Opset{Domain: runtimeDomain, Version: 1})
	}
	return m, b, nil
}
