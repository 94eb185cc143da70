package answer

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Memory is shared with a process in which kernels run. It is not to be trusted for anything but what it holds when it
// is compared.
type Memory struct {
	// File is what the process gets.
	File  *os.File
	bytes []byte
}

// NewMemory is memory without any size.
func NewMemory() (*Memory, error) {
	fd, err := unix.MemfdCreate("answers", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for answers: %w", err)
	}
	return &Memory{File: os.NewFile(uintptr(fd), "answers")}, nil
}

// Resize gives the memory its size, once and for all: a process that made it smaller would take what is read here
// away.
func (m *Memory) Resize(size int64) error {
	if err := m.File.Truncate(size); err != nil {
		return fmt.Errorf("memory for answers: %d bytes: %w", size, err)
	}
	fd := int(m.File.Fd())
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	if err == nil {
		m.bytes, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		return fmt.Errorf("memory for answers: %w", err)
	}
	return nil
}

// Slot is the memory of an execution's outputs.
func (m *Memory) Slot(k int, slotBytes int64) []byte {
	return m.bytes[int64(k)*slotBytes : int64(k+1)*slotBytes]
}

// Bytes are all that there are.
func (m *Memory) Bytes() []byte { return m.bytes }

// Close gives the memory back.
func (m *Memory) Close() error {
	var err error
	if m.bytes != nil {
		err = unix.Munmap(m.bytes)
		m.bytes = nil
	}
	return errors.Join(err, m.File.Close())
}
