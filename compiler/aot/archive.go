package aot

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Names of a package's members.
const (
	manifestName = "manifest.json"
	objectName   = "model.so"
	headerName   = "tilth.h"
	weightsName  = "weights.bin"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// archiveWriter writes the members of a package.
type archiveWriter struct {
	tar     *tar.Writer
	members []Member
}

// add writes a member of known size; fill must write exactly that many bytes.
func (w *archiveWriter) add(name string, size int64, fill func(io.Writer) error) error {
	header := &tar.Header{Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatGNU}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	sha, crc := sha256.New(), crc32.New(castagnoli)
	if err := fill(io.MultiWriter(w.tar, sha, crc)); err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	digest := hex.EncodeToString(sha.Sum(nil))
	w.members = append(w.members, Member{Name: name, SizeBytes: size, SHA256: digest, CRC32C: crc.Sum32()})
	return nil
}

func (w *archiveWriter) addBytes(name string, data []byte) error {
	return w.add(name, int64(len(data)), func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// finish completes the manifest and writes it as the last member.
func (w *archiveWriter) finish(m *Manifest) error {
	m.Members = w.members
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if err := w.addBytes(manifestName, append(data, '\n')); err != nil {
		return err
	}
	return w.tar.Close()
}

// location is where a member lies in the archive.
type location struct{ offset, size int64 }

// open opens a package.
func open(path string) (*os.File, error) {
	f, err := filesystem.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: name a package, or make one of a model with 'tilth compile'", errors.Unwrap(err))
	}
	return f, err
}

// index lists the members of a package without reading them. The file offset afterwards is undefined.
func index(f *os.File) (map[string]location, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("it is a folder: name a package, as 'tilth compile' writes it")
	}
	members := map[string]location{}
	r := tar.NewReader(f)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) && len(members) > 0 {
			return members, nil
		}
		if err != nil {
			return nil, errors.New("it is not a package, or was cut short: 'tilth compile' makes a package of a model")
		}
		offset, err := f.Seek(0, io.SeekCurrent) // the reader consumes whole blocks and buffers nothing
		if err != nil {
			return nil, err
		}
		if header.Size > info.Size()-offset {
			return nil, fmt.Errorf("it was cut short: %s has %d bytes at byte %d of %d", header.Name, header.Size, offset, info.Size())
		}
		if _, twice := members[header.Name]; twice || len(members) == maxMembers {
			return nil, fmt.Errorf("it has %s twice, or more than %d members", header.Name, maxMembers)
		}
		members[header.Name] = location{offset, header.Size}
	}
}

// maxMembers limits the members of a package, which has four.
const maxMembers = 64

// maxMemberBytes limits members that are read into memory: the manifest, which is read before verification, and code.
var maxMemberBytes = map[string]int64{manifestName: 16 << 20, objectName: 1 << 30}

// readMember reads a member into memory.
func readMember(f *os.File, members map[string]location, name string) ([]byte, error) {
	e, ok := members[name]
	if !ok {
		return nil, fmt.Errorf("it has no %s", name)
	}
	if e.size > maxMemberBytes[name] {
		return nil, fmt.Errorf("its %s has %d bytes, more than the limit of %d", name, e.size, maxMemberBytes[name])
	}
	data, err := io.ReadAll(io.NewSectionReader(f, e.offset, e.size))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// verify checks content against the manifest.
func (m *Manifest) verify(name string, data []byte) error {
	for _, member := range m.Members {
		if member.Name != name {
			continue
		}
		if int64(len(data)) != member.SizeBytes || crc32.Checksum(data, castagnoli) != member.CRC32C {
			return fmt.Errorf("%s is damaged: it does not match %s; copy or compile the package again", name, manifestName)
		}
		return nil
	}
	return fmt.Errorf("%s does not describe %s", manifestName, name)
}
