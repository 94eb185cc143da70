import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A model of a package that was unpacked into a folder, by Java's foreign functions (JDK 22 or newer). Short, and meant to
 * be copied. A model belongs to the thread that opened it.
 */
public final class Model implements AutoCloseable {
  /** An input or an output: row-major, little-endian; {@code type} is one of the header's {@code enum tilth_type}. */
  public record Tensor(String name, int type, long[] shape, long bytes) {}

  private static final AddressLayout TEXT =
      ValueLayout.ADDRESS.withTargetLayout(MemoryLayout.sequenceLayout(1 << 20, ValueLayout.JAVA_BYTE));

  // struct tilth_tensor: name, type, rank, shape, bytes.
  private static final AddressLayout TENSOR =
      ValueLayout.ADDRESS.withTargetLayout(MemoryLayout.sequenceLayout(32, ValueLayout.JAVA_BYTE));

  private final Arena arena = Arena.ofConfined();
  private final MethodHandle close, run, input, output, lastError;
  private MemorySegment model;
  private final List<Tensor> inputs, outputs;

  /** Opens a package with the threads for which it was compiled. */
  public Model(Path folder) {
    var library = SymbolLookup.libraryLookup(folder.resolve("model.so").toAbsolutePath(), arena);
    var pointer = ValueLayout.ADDRESS;
    var open = function(library, "tilth_open", FunctionDescriptor.of(pointer, pointer, ValueLayout.JAVA_LONG));
    close = function(library, "tilth_close", FunctionDescriptor.ofVoid(pointer));
    run = function(library, "tilth_run", FunctionDescriptor.ofVoid(pointer));
    input = function(library, "tilth_input", FunctionDescriptor.of(pointer, pointer, ValueLayout.JAVA_INT));
    output = function(library, "tilth_output", FunctionDescriptor.of(pointer, pointer, ValueLayout.JAVA_INT));
    lastError = function(library, "tilth_last_error", FunctionDescriptor.of(TEXT));
    inputs = tensors(library, "tilth_input");
    outputs = tensors(library, "tilth_output");
    var weights = arena.allocateFrom(folder.resolve("weights.bin").toString());
    model = (MemorySegment) call(open, weights, 0L);
    if (model.address() == 0) {
      var why = lastError();
      arena.close();
      throw new IllegalStateException(folder + ": " + why);
    }
  }

  public List<Tensor> inputs() {
    return inputs;
  }

  public List<Tensor> outputs() {
    return outputs;
  }

  /** Where to write an input; runs keep its content. */
  public MemorySegment input(int index) {
    return ((MemorySegment) call(input, model, index)).reinterpret(inputs.get(index).bytes(), arena, null);
  }

  /** Where the last run left an output; the next one overwrites it. */
  public MemorySegment output(int index) {
    return ((MemorySegment) call(output, model, index)).reinterpret(outputs.get(index).bytes(), arena, null).asReadOnly();
  }

  public void run() {
    call(run, model);
    var error = lastError();
    if (!error.isEmpty()) throw new IllegalStateException(error);
  }

  /** Frees the model; what its inputs and outputs pointed to must not be used any more, which Java checks. */
  @Override
  public void close() {
    if (model == null) return;
    call(close, model);
    model = null;
    arena.close();
  }

  private String lastError() {
    return ((MemorySegment) call(lastError)).getString(0);
  }

  private List<Tensor> tensors(SymbolLookup library, String kind) {
    var count = function(library, kind + "_count", FunctionDescriptor.of(ValueLayout.JAVA_INT));
    var describe = function(library, kind + "_tensor", FunctionDescriptor.of(TENSOR, ValueLayout.JAVA_INT));
    var list = new ArrayList<Tensor>();
    for (int i = 0, n = (int) call(count); i < n; i++) {
      var t = (MemorySegment) call(describe, i);
      var shape = new long[t.get(ValueLayout.JAVA_INT, 12)];
      var extents = t.get(ValueLayout.ADDRESS, 16).reinterpret(8L * shape.length);
      for (int axis = 0; axis < shape.length; axis++) shape[axis] = extents.getAtIndex(ValueLayout.JAVA_LONG, axis);
      list.add(new Tensor(t.get(TEXT, 0).getString(0), t.get(ValueLayout.JAVA_INT, 8), shape, t.get(ValueLayout.JAVA_LONG, 24)));
    }
    return List.copyOf(list);
  }

  private static MethodHandle function(SymbolLookup library, String name, FunctionDescriptor type) {
    var address = library.find(name).orElseThrow(() -> new IllegalStateException("the package has no function " + name));
    return Linker.nativeLinker().downcallHandle(address, type);
  }

  private static Object call(MethodHandle function, Object... arguments) {
    try {
      return function.invokeWithArguments(arguments);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }
}
