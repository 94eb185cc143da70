package runner

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Memory is shared with a process in which kernels run. Its content is only trusted at the moment of a
// comparison.
type Memory struct {
	// File is passed to the process.
	File  *os.File
	bytes []byte
}

// NewMemory returns empty memory.
func NewMemory() (*Memory, error) {
	fd, err := unix.MemfdCreate("answers", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for answers: %w", err)
	}
	m := &Memory{File: os.NewFile(uintptr(fd), "answers")}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		return nil, errors.Join(fmt.Errorf("memory for answers: %w", err), m.Close())
	}
	return m, nil
}

// Grow increases the size of the memory to at least size. Memory never shrinks, because a process could then
// invalidate pages being read here.
func (m *Memory) Grow(size int64) error {
	if size <= int64(len(m.bytes)) {
		return nil
	}
	if err := m.File.Truncate(size); err != nil {
		return fmt.Errorf("memory for answers: %d bytes: %w", size, err)
	}
	all, err := unix.Mmap(int(m.File.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("memory for answers: %w", err)
	}
	err = m.unmap()
	m.bytes = all
	return err
}

// Clear zeroes the memory and releases its pages.
func (m *Memory) Clear() error {
	err := unix.Fallocate(int(m.File.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(m.bytes)))
	if err != nil {
		return fmt.Errorf("clearing the memory for answers: %w", err)
	}
	return nil
}

// Slot returns the memory of an execution's outputs.
func (m *Memory) Slot(k int, slotBytes int64) []byte {
	return m.bytes[int64(k)*slotBytes : int64(k+1)*slotBytes]
}

// Bytes returns the whole memory.
func (m *Memory) Bytes() []byte { return m.bytes }

// Close releases the memory.
func (m *Memory) Close() error { return errors.Join(m.unmap(), m.File.Close()) }

func (m *Memory) unmap() error {
	if m.bytes == nil {
		return nil
	}
	all := m.bytes
	m.bytes = nil
	return unix.Munmap(all)
}
