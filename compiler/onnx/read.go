package onnx

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"google.golang.org/protobuf/encoding/protowire"
)

// MaxRank limits the axes of a tensor.
const MaxRank = 16

// Limits on the input of Read. A part is a message of the format, such as a node, an attribute or a tensor: an
// empty one takes two bytes of the file and a hundred times that in memory.
const (
	maxModelBytes = 8 << 30
	maxParts      = 1 << 21
	maxNesting    = 16
)

// ReadFile reads a model from a file, which may be compressed by gzip, and its external data.
func ReadFile(path string) (*Model, error) {
	m, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read model %s: %w", path, err)
	}
	return m, nil
}

func readFile(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, cause(err)
	}
	if info.IsDir() {
		return nil, errors.New("it is a folder: name the .onnx file in it")
	}
	data, err := readAll(f, info.Size())
	if err != nil {
		return nil, cause(err)
	}
	beside := besides(path, maxModelBytes-int64(len(data)))
	defer beside.close()
	return read(data, beside)
}

// cause strips the path from a file error, since the caller adds it.
func cause(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	return err
}

// ReadFrom reads a model from a stream, such as standard input, which may be compressed by gzip; name is used in
// messages.
func ReadFrom(r io.Reader, name string) (*Model, error) {
	data, err := readAll(r, 0)
	if err != nil {
		return nil, fmt.Errorf("read model from %s: %w", name, err)
	}
	m, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("read model from %s: %w", name, err)
	}
	return m, nil
}

// readAll reads a file of about the given size, and decompresses it.
func readAll(r io.Reader, bytes int64) ([]byte, error) {
	buffered := bufio.NewReader(r)
	begin, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(begin) != "\x1f\x8b" {
		return readBounded(buffered, bytes)
	}
	z, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("decompress it: %w", err)
	}
	data, err := readBounded(z, 0)
	if err != nil {
		return nil, fmt.Errorf("decompress it: %w", err)
	}
	return data, nil
}

// readBounded reads about the given number of bytes, and at most maxModelBytes.
func readBounded(r io.Reader, about int64) ([]byte, error) {
	if about > min(maxModelBytes, math.MaxInt-bytes.MinRead) {
		return nil, errTooLarge
	}
	var b bytes.Buffer
	b.Grow(int(about) + bytes.MinRead) // room to find the end
	if n, err := b.ReadFrom(io.LimitReader(r, maxModelBytes+1)); err != nil {
		return nil, err
	} else if n > maxModelBytes {
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}

var errTooLarge = fmt.Errorf("it is over the limit of %d bytes", int64(maxModelBytes))

// Read decodes a ModelProto without external data. Its tensors may share the memory of data.
func Read(data []byte) (*Model, error) { return read(data, nil) }

// read decodes a ModelProto with external data in a directory.
func read(data []byte, beside *folder) (*Model, error) {
	m, r := &Model{}, &reader{beside: beside}
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.int(&m.IRVersion)
		case 2:
			return f.text(&m.ProducerName)
		case 3:
			return f.text(&m.ProducerVersion)
		case 7:
			b, err := f.message()
			if err != nil {
				return err
			}
			m.Graph, err = r.graph(b)
			return err
		case 8:
			return addPart(r, &m.Opsets, f, r.opset)
		case 25:
			return addPart(r, &m.Functions, f, r.function)
		}
		return nil
	})
	if err == nil && m.Graph == nil {
		err = errors.New("no graph: the file is not an ONNX model")
	}
	if err != nil {
		return nil, cmp.Or(refuseOther(data), err)
	}
	if m.Data, err = beside.files(); err != nil {
		return nil, err
	}
	m.Digest = digest(data, m.Data)
	return m, nil
}

// digest returns the digest of a model file and its external files.
func digest(model []byte, beside []DataFile) string {
	sum := sha256.Sum256(model)
	own := hex.EncodeToString(sum[:])
	if len(beside) == 0 {
		return own
	}
	all := sha256.New()
	all.Write([]byte(own))
	for _, f := range beside {
		all.Write([]byte(f.SHA256))
	}
	return hex.EncodeToString(all.Sum(nil))
}

// reader checks the input against the limits.
type reader struct {
	parts int
	// depth is the number of graphs around the part that is read.
	depth int
	// sparse is the size of the dense tensors for sparse ones, in bytes.
	sparse int64
	beside *folder // with external data, or nil
}

// addPart reads the part that a field holds, and adds it to a list.
func addPart[T any](r *reader, to *[]T, f field, read func(data []byte) (T, error)) error {
	data, err := f.message()
	if err != nil {
		return err
	}
	if r.parts++; r.parts > maxParts {
		return fmt.Errorf("more than %d nodes, attributes and tensors", maxParts)
	}
	part, err := read(data)
	if err == nil {
		*to = append(*to, part)
	}
	return err
}

func (r *reader) opset(data []byte) (o Opset, err error) {
	err = eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.domain(&o.Domain)
		case 2:
			return f.int(&o.Version)
		}
		return nil
	})
	return o, err
}

func (r *reader) graph(data []byte) (*Graph, error) {
	if r.depth > maxNesting {
		return nil, fmt.Errorf("graphs are nested deeper than %d", maxNesting)
	}
	r.depth++
	defer func() { r.depth-- }()
	g := &Graph{}
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return addPart(r, &g.Nodes, f, r.node)
		case 2:
			return f.text(&g.Name)
		case 5:
			return addPart(r, &g.Initializers, f, r.tensor)
		case 11:
			return addPart(r, &g.Inputs, f, readValueInfo)
		case 12:
			return addPart(r, &g.Outputs, f, readValueInfo)
		case 13:
			return addPart(r, &g.values, f, func(data []byte) ([]byte, error) { return data, nil })
		case 15:
			return addPart(r, &g.Initializers, f, r.sparseTensor)
		}
		return nil
	})
	g.Nodes = sorted(g.Nodes)
	return g, err
}

func (r *reader) node(data []byte) (*Node, error) {
	n := &Node{}
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.texts(&n.Inputs)
		case 2:
			return f.texts(&n.Outputs)
		case 3:
			return f.text(&n.Name)
		case 4:
			return f.text(&n.Op)
		case 7:
			return f.domain(&n.Domain)
		case 5:
			return addPart(r, &n.Attributes, f, r.attribute)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("node %q (%s): %w", n.Name, n.Op, err)
	}
	return n, nil
}

func (r *reader) attribute(data []byte) (*Attribute, error) {
	a := &Attribute{}
	err := eachField(data, func(f field) error { return r.attributePart(a, f) })
	if err != nil {
		return nil, fmt.Errorf("attribute %q: %w", a.Name, err)
	}
	if a.Type == AttrUndefined {
		a.Type = a.guessType()
	}
	if a.Ref == "" && (a.Type == AttrTensor && a.Tensor == nil || a.Type == AttrGraph && a.Graph == nil) {
		return nil, fmt.Errorf("attribute %q of type %d has no value", a.Name, a.Type)
	}
	return a, nil
}

func (r *reader) attributePart(a *Attribute, f field) (err error) {
	switch f.number {
	case 1:
		return f.text(&a.Name)
	case 2:
		a.Float = math.Float32frombits(uint32(f.value))
		return f.want(protowire.Fixed32Type)
	case 3:
		return f.int(&a.Int)
	case 4:
		return f.text(&a.String)
	case 5:
		a.Tensor, err = r.tensor(f.bytes)
	case 6:
		a.Graph, err = r.graph(f.bytes)
	case 7:
		return f.numbers(protowire.Fixed32Type, func(v uint64) { a.Floats = append(a.Floats, math.Float32frombits(uint32(v))) })
	case 8:
		return f.numbers(protowire.VarintType, func(v uint64) { a.Ints = append(a.Ints, int64(v)) })
	case 9:
		return f.texts(&a.Strings)
	case 22:
		a.Tensor, err = r.sparseTensor(f.bytes)
	case 21:
		return f.text(&a.Ref)
	case 20:
		if a.Type = AttributeType(f.value); a.Type == attrSparseTensor {
			a.Type = AttrTensor
		}
		return f.want(protowire.VarintType)
	}
	return err
}

// guessType returns the type of an attribute in models older than IR version 2, which do not declare it.
func (a *Attribute) guessType() AttributeType {
	switch {
	case a.Tensor != nil:
		return AttrTensor
	case a.Graph != nil:
		return AttrGraph
	case a.Floats != nil:
		return AttrFloats
	case a.Ints != nil:
		return AttrInts
	case a.Strings != nil:
		return AttrStrings
	case a.String != "":
		return AttrString
	case a.Float != 0:
		return AttrFloat
	}
	return AttrInt
}
