package npz

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// The format is described in numpy.lib.format: a magic, a version, a length, a Python dictionary, the elements.

const (
	magic          = "\x93NUMPY"
	maxHeaderBytes = 1 << 16
	maxRank        = 32
)

// descriptors maps numpy's type names, without the byte order. numpy has no bfloat16.
var descriptors = map[string]array.DType{
	"f4": array.Float32, "f8": array.Float64, "f2": array.Float16, "b1": array.Bool,
	"i1": array.Int8, "i2": array.Int16, "i4": array.Int32, "i8": array.Int64,
	"u1": array.Uint8, "u2": array.Uint16, "u4": array.Uint32, "u8": array.Uint64,
}

// readArray reads one .npy array.
func readArray(r io.Reader) (*array.Array, error) {
	text, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	a, fortran, err := parseHeader(text)
	if err != nil {
		return nil, err
	}
	size, err := array.CheckedBytes(a.DType, a.Shape)
	if err != nil {
		return nil, err
	}
	if size > maxArrayBytes {
		return nil, fmt.Errorf("%d bytes are over the limit of %d", size, int64(maxArrayBytes))
	}
	var data bytes.Buffer // grows with the input, not with the header's claim
	if n, err := io.Copy(&data, io.LimitReader(r, size)); err != nil || n != size {
		err = cmp.Or(err, io.ErrUnexpectedEOF)
		return nil, fmt.Errorf("%v%v needs %d bytes but has %d: %w", a.DType, a.Shape, size, n, err)
	}
	a.Data = data.Bytes()
	if fortran {
		return fromFortran(a), nil
	}
	return a, nil
}

func readHeader(r io.Reader) (string, error) {
	var start [8]byte
	if _, err := io.ReadFull(r, start[:]); err != nil || string(start[:6]) != magic {
		return "", fmt.Errorf("not a .npy array")
	}
	var length uint32
	switch start[6] {
	case 1:
		var short uint16
		if err := binary.Read(r, binary.LittleEndian, &short); err != nil {
			return "", fmt.Errorf("broken header: %w", err)
		}
		length = uint32(short)
	case 2, 3:
		if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
			return "", fmt.Errorf("broken header: %w", err)
		}
	default:
		return "", fmt.Errorf("format version %d is not supported", start[6])
	}
	if length > maxHeaderBytes {
		return "", fmt.Errorf("header of %d bytes is over the limit of %d", length, maxHeaderBytes)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", fmt.Errorf("broken header: %w", err)
	}
	return string(text), nil
}

var headerPattern = regexp.MustCompile(
	`^\s*\{\s*'descr':\s*'([^']*)',\s*'fortran_order':\s*(True|False),\s*'shape':\s*\(([0-9,\sL]*)\),?\s*\}\s*$`)

func parseHeader(text string) (a *array.Array, fortran bool, err error) {
	m := headerPattern.FindStringSubmatch(text)
	if m == nil {
		return nil, false, fmt.Errorf("invalid header %.80q", text)
	}
	order, name := m[1][:min(1, len(m[1]))], m[1][min(1, len(m[1])):]
	d := descriptors[name]
	if d == array.Invalid || order != "<" && (order != "|" || d.Bytes() != 1) {
		return nil, false, fmt.Errorf("element type %q is not supported: convert to a little-endian number or bool", m[1])
	}
	a = &array.Array{DType: d, Shape: []int64{}}
	for _, part := range strings.Split(m[3], ",") {
		part = strings.TrimSuffix(strings.TrimSpace(part), "L")
		if part == "" {
			continue
		}
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || len(a.Shape) == maxRank {
			return nil, false, fmt.Errorf("invalid shape (%.80s)", m[3])
		}
		a.Shape = append(a.Shape, n)
	}
	return a, m[2] == "True", nil
}

// fromFortran reorders elements that are stored with the first axis fastest.
func fromFortran(a *array.Array) *array.Array {
	out := array.New(a.DType, a.Shape...)
	size := a.DType.Bytes()
	index := make([]int64, len(a.Shape))
	for at := int64(0); at < int64(len(a.Data)); at += size {
		var to int64
		for k, i := range index {
			to = to*a.Shape[k] + i
		}
		copy(out.Data[to*size:], a.Data[at:at+size])
		for k := range index {
			if index[k]++; index[k] < a.Shape[k] {
				break
			}
			index[k] = 0
		}
	}
	return out
}

// writeArray writes one array as .npy version 1.
func writeArray(w io.Writer, a *array.Array) error {
	if err := a.Check(); err != nil {
		return err
	}
	name := ""
	for n, d := range descriptors {
		if d == a.DType {
			name = n
		}
	}
	if name == "" {
		return fmt.Errorf("numpy has no type for %v", a.DType)
	}
	order := "<"
	if a.DType.Bytes() == 1 {
		order = "|"
	}
	shape := ""
	for _, e := range a.Shape {
		shape += strconv.FormatInt(e, 10) + ", "
	}
	if len(a.Shape) != 1 {
		shape = strings.TrimSuffix(shape, ", ")
	}
	text := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, name, strings.TrimSuffix(shape, " "))
	padding := 64 - (len(magic)+4+len(text)+1)%64
	text += strings.Repeat(" ", padding%64) + "\n"
	head := append([]byte(magic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(text)))
	if _, err := w.Write(append(head, text...)); err != nil {
		return err
	}
	_, err := w.Write(a.Data)
	return err
}
