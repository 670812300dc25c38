import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.CoMapFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Counts records by key in windows, in as many wrong ways as its arguments say: --name value.
 *
 * <p>Values of the topics are {"t":time,"k":"key"}. With several topics the streams are united, or
 * connected if --connect is given. --strategy says where watermarks are made: source, after, none;
 * the source of the topic --without makes none.
 */
public class WhyJob {
  public static void main(String[] args) throws Exception {
    Map<String, String> o = new HashMap<>();
    for (int i = 0; i + 1 < args.length; i += 2) {
      o.put(args[i].substring(2), args[i + 1]);
    }
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
    env.setParallelism(Integer.parseInt(o.getOrDefault("parallelism", "1")));
    String place = o.getOrDefault("strategy", "source");
    WatermarkStrategy<String> strategy = strategy(o);

    DataStream<String> all = null;
    String[] topics = o.get("topics").split(",");
    for (String topic : topics) {
      KafkaSource<String> source =
          KafkaSource.<String>builder()
              .setBootstrapServers(o.get("brokers"))
              .setTopics(topic)
              .setStartingOffsets(OffsetsInitializer.earliest())
              .setValueOnlyDeserializer(new SimpleStringSchema())
              .build();
      boolean here = place.equals("source") && !topic.equals(o.get("without"));
      DataStream<String> stream =
          env.fromSource(source, here ? strategy : WatermarkStrategy.noWatermarks(), topic);
      if (place.equals("after")) {
        stream = stream.map(s -> s).returns(String.class).name("parse").assignTimestampsAndWatermarks(strategy).name("assign");
      }
      if (all == null) {
        all = stream;
      } else if (o.containsKey("connect")) {
        all = all.connect(stream).map(new Both()).name("enrich");
      } else {
        all = all.union(stream);
      }
    }
    SingleOutputStreamOperator<String> counts =
        all.keyBy(s -> s.substring(s.lastIndexOf(':')))
            .window(TumblingEventTimeWindows.of(Duration.ofMillis(Long.parseLong(o.getOrDefault("window", "5000")))))
            .process(new Count());
    if (!o.containsKey("unnamed")) {
      counts = counts.name("count per key");
    }
    counts.sinkTo(new DiscardingSink<>()).name("out");
    env.execute(o.get("name"));
  }

  private static WatermarkStrategy<String> strategy(Map<String, String> o) {
    WatermarkStrategy<String> s =
        WatermarkStrategy.<String>forBoundedOutOfOrderness(Duration.ofMillis(Long.parseLong(o.getOrDefault("bound", "1000"))))
            .withTimestampAssigner((value, kafka) -> Long.parseLong(value.substring(5, value.indexOf(','))));
    if (o.containsKey("idle")) {
      s = s.withIdleness(Duration.ofMillis(Long.parseLong(o.get("idle"))));
    }
    if (o.containsKey("drift")) {
      s = s.withWatermarkAlignment("group", Duration.ofMillis(Long.parseLong(o.get("drift"))));
    }
    return s;
  }

  private static class Both implements CoMapFunction<String, String, String> {
    public String map1(String s) {
      return s;
    }

    public String map2(String s) {
      return s;
    }
  }

  private static class Count extends ProcessWindowFunction<String, String, String, TimeWindow> {
    public void process(String key, Context context, Iterable<String> values, Collector<String> out) {
      long n = 0;
      for (String ignored : values) {
        n++;
      }
      out.collect(context.window().getEnd() + " " + key + " " + n);
    }
  }
}
