package codegen

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/target"
)

// maxBlocks is the maximum size of a grid's first dimension on any GPU.
const maxBlocks = 1<<31 - 1

// maxElements is the maximum number of elements per buffer, because indices have 32 bits.
const maxElements = 1<<31 - 1

// checkLimits returns an error that names the GPU limit that a program exceeds, before a compiler runs.
func checkLimits(f *ir.Func, g *target.GPU) error {
	for _, b := range globals(f) {
		if b.Elements() > maxElements {
			return fmt.Errorf("gpu: %s has %d elements, more than the %d that kernels can count", b.name, b.Elements(), maxElements)
		}
	}
	if ir.Any(f.Body, func(c *ir.Call) bool { return c.Starts == nvidia.Products }) && !g.Warpgroups() {
		return fmt.Errorf("gpu: warpgroup products require sm_90a, and this is %s (%s)", g.Model, g.Arch)
	}
	for _, l := range launchesOf(f) {
		if err := checkBoxes(l, globals(f), g); err != nil {
			return err
		}
		switch {
		case l.loop.Extent > maxBlocks:
			return fmt.Errorf("gpu: a launch has %d blocks, more than %d", l.loop.Extent, maxBlocks)
		case l.threads > int64(g.BlockThreads):
			return fmt.Errorf("gpu: a block has %d threads, more than the %d of %s", l.threads, g.BlockThreads, g.Model)
		case l.sharedBytes > g.BlockSharedBytes:
			return fmt.Errorf("gpu: a block takes %d bytes of shared memory, more than the %d of %s", l.sharedBytes, g.BlockSharedBytes, g.Model)
		case l.privateBytes/4 > int64(g.ThreadRegisters):
			return fmt.Errorf("gpu: a thread keeps %d bytes, more than the %d registers of %s", l.privateBytes, g.ThreadRegisters, g.Model)
		}
	}
	return nil
}

// maxMaps is the maximum number of tensor maps per launch: kernel parameters are limited to 4096 bytes.
const maxMaps = 16

// checkBoxes returns an error if a launch cannot use TMA copies.
func checkBoxes(l launch, all []global, g *target.GPU) error {
	var err error
	ir.Visit(l.loop.Body, func(st ir.Stmt) {
		c, signals := nvidia.BoxOf(st)
		if c == nil || err != nil {
			return
		}
		from := c.Args[1].Tensor
		at := slices.IndexFunc(all, func(g global) bool { return g.Tensor == from })
		switch {
		case !signals:
			err = fmt.Errorf("gpu: TMA copy of %s is never awaited", from.Name)
		case !g.Warpgroups():
			err = fmt.Errorf("gpu: TMA copies require sm_90a, and this is %s (%s)", g.Model, g.Arch)
		case at < 0 || !all[at].aligned:
			err = fmt.Errorf("gpu: TMA copy of %s, which is not in global memory, or may begin anywhere", from.Name)
		case writes(l.loop.Body, from):
			err = fmt.Errorf("gpu: TMA copy of %s in the launch that writes it", from.Name)
		}
	})
	if err == nil {
		if n := len(mapsOf(l.loop, globalsOf(l.loop, all))); n > maxMaps {
			err = fmt.Errorf("gpu: a launch has TMA copies of %d tensors, more than %d", n, maxMaps)
		}
	}
	return err
}

// writes reports whether a block writes to a tensor.
func writes(b ir.Block, t *expr.Tensor) (found bool) {
	ir.Visit(b, func(st ir.Stmt) {
		w := ir.Written(st)
		found = found || w != nil && w.Tensor == t
	})
	return found
}

// launch is a loop over blocks with its resources.
type launch struct {
	loop    *ir.For
	threads int64
	// sharedBytes is the shared memory per block. privateBytes is the peak of a thread's variables, without the
	// compiler's temporaries.
	sharedBytes, privateBytes int64
}

// maxDeclaredShared is the maximum static shared memory of a kernel in bytes.
const maxDeclaredShared = 48 << 10

// dynamicBytes returns the dynamic shared memory of a block: all or none of it.
func (l launch) dynamicBytes() int64 {
	if l.sharedBytes <= maxDeclaredShared {
		return 0
	}
	return l.sharedBytes
}

// launchesOf returns the launches of a program in order.
func launchesOf(f *ir.Func) []launch {
	var list []launch
	for _, st := range f.Body {
		n, ok := st.(*ir.For)
		if !ok || n.Kind != ir.Blocks {
			continue
		}
		l := launch{loop: n, threads: 1, privateBytes: maxPrivate(n.Body)}
		ir.Visit(n.Body, func(st ir.Stmt) {
			switch x := st.(type) {
			case *ir.For:
				if x.Kind == ir.Threads {
					l.threads = max(l.threads, x.Extent)
				}
			case *ir.Alloc:
				if x.Buffer.Space == ir.Shared {
					l.sharedBytes = aligned(l.sharedBytes, x.Buffer) + x.Buffer.Bytes()
				}
			}
		})
		list = append(list, l)
	}
	return list
}

// sharedAlign is the alignment of arrays in shared memory in bytes, swizzledAlign that of swizzled arrays.
const (
	sharedAlign   = 16
	swizzledAlign = 1024
)

// aligned returns the first offset, from bytes on, at which a buffer may start.
func aligned(bytes int64, b *ir.Buffer) int64 {
	align := int64(sharedAlign)
	if b.Row > 0 {
		align = swizzledAlign
	}
	return (bytes + align - 1) / align * align
}

// maxPrivate returns the peak of a thread's private bytes in scope.
func maxPrivate(b ir.Block) (largest int64) {
	own := int64(0)
	for _, st := range b {
		inner := int64(0)
		switch n := st.(type) {
		case *ir.Alloc:
			if n.Buffer.Space == ir.Private {
				own += n.Buffer.Bytes()
			}
		case *ir.For:
			inner = maxPrivate(n.Body)
		case *ir.If:
			inner = max(maxPrivate(n.Then), maxPrivate(n.Else))
		}
		largest = max(largest, own+inner)
	}
	return largest
}
