import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Runs a package on inputs from files of plain bytes, one each, and writes the first output to another: {@code java Run.java
 * FOLDER OUTPUT INPUT...}.
 */
class Run {
  public static void main(String[] arguments) throws Exception {
    try (var model = new Model(Path.of(arguments[0]))) {
      for (int i = 0; i < model.inputs().size(); i++) {
        var bytes = Files.readAllBytes(Path.of(arguments[2 + i]));
        if (bytes.length != model.inputs().get(i).bytes())
          throw new IllegalArgumentException("%s has %d bytes; %s has %d".formatted(
              arguments[2 + i], bytes.length, model.inputs().get(i).name(), model.inputs().get(i).bytes()));
        model.input(i).copyFrom(MemorySegment.ofArray(bytes));
      }
      model.run();
      Files.write(Path.of(arguments[1]), model.output(0).toArray(java.lang.foreign.ValueLayout.JAVA_BYTE));
      System.out.println(model.outputs().get(0).name());
    }
  }
}
