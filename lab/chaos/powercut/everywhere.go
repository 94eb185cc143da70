package powercut

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Everywhere cuts the power after each step, and before the first, with so many losses each below a path from the root
// on, which the seed draws. check judges what is left, in a folder that need not be there, and is told after how many
// steps. The first failure is returned with the least loss that it takes.
func (t *Trace) Everywhere(seed uint64, losses int, below string, check func(left string, at int) error) error {
	rng, disk := rand.New(rand.NewPCG(seed, 0)), t.NewDisk()
	for at := range t.Len() + 1 {
		if err := disk.Advance(at); err != nil {
			return err
		}
		for range losses {
			if err := disk.Try(disk.Draw(rng, below), below, check); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
		}
	}
	return nil
}

// Try has check judge what a loss leaves below a path, as Everywhere does. The folder is alone in one that is removed
// afterwards.
func (d *Disk) Try(l Loss, below string, check func(left string, at int) error) error {
	once := func(l Loss) error {
		dir, err := os.MkdirTemp("", "powercut")
		if err != nil {
			return err
		}
		left := filepath.Join(dir, "left")
		err = d.Write(left, below, l)
		if err == nil {
			err = check(left, d.at)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	if once(l) == nil {
		return nil
	}
	least := d.Shrink(l, func(l Loss) bool { return once(l) != nil })
	return fmt.Errorf("after step %d of %d: %w\nit takes no more than the loss of\n%s", d.at, d.trace.Len(), once(least), least.Tell())
}
