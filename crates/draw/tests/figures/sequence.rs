//! Tests of time-sequence diagrams: the flow of each panel, and the text of its heading.

use crate::figures::samples::{self, handoff, ms, trace};
use crate::figures::svg::{assert_sound, save};
use draw::{Counts, Handoff, Mark, MarkKind, Noticed, Owner, SequenceFigure, SideBySideFigure, Step};
use wire::{Duration, Instant};

/// Returns the panels below the overviews. Each begins with a heading that has the handoff's number.
fn panels(svg: &str) -> Vec<&str> {
    let bold = |line: &str| line.contains("font-weight=\"bold\"") && line.contains(" s: ");
    let starts: Vec<usize> = svg.lines().enumerate().filter(|(_, line)| bold(line)).map(|(i, _)| i).collect();
    let lines: Vec<usize> = std::iter::once(0).chain(svg.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let ends = starts.iter().skip(1).map(|start| lines[*start]).chain([svg.len()]);
    starts.iter().zip(ends).map(|(start, end)| &svg[lines[*start]..end]).collect()
}

#[test]
fn the_numbers_of_a_sequence() {
    let expected = "\
what,handoff,host,flow,path,counts,place,from_s,to_s,label
handoff,1,mobile,,,,,0.015000000,0.015000000,hard b2->b3
noticed,1,mobile,\"server:4000 > mobile:5000, UDP\",,,,,,outage 15 ms
outage,1,mobile,\"server:4000 > mobile:5000, UDP\",,,,0.015000000,0.020000000,link
outage,1,mobile,\"server:4000 > mobile:5000, UDP\",,,,0.020000000,0.030000000,path switch
sent,,,\"server:4000 > mobile:5000, UDP\",,datagram,1,0.000000000,,
received,,,\"server:4000 > mobile:5000, UDP\",,datagram,1,0.007000000,,
sent,,,\"server:4000 > mobile:5000, UDP\",,datagram,2,0.010000000,,
lost,,,\"server:4000 > mobile:5000, UDP\",,datagram,2,0.017000000,,
sent,,,\"server:4000 > mobile:5000, UDP\",,datagram,3,0.020000000,,
lost,,,\"server:4000 > mobile:5000, UDP\",,datagram,3,0.027000000,,
sent,,,\"server:4000 > mobile:5000, UDP\",,datagram,4,0.030000000,,
received,,,\"server:4000 > mobile:5000, UDP\",,datagram,4,0.037000000,,
";
    assert_eq!(samples::small_sequence().csv(), expected);
}

#[test]
fn each_handoff_has_a_panel_for_its_host_with_its_flow_alone() {
    let svg = samples::two_hosts().svg();
    save("two-hosts", &svg);
    assert_sound(&svg);
    let panels = panels(&svg);
    assert_eq!(panels.len(), 3);
    let heads = [
        ">1 mobile hard b1-&gt;b2 at 2.000 s: outage 80 ms<",
        ">2 other hard b2-&gt;b1 at 2.100 s: outage never ends<",
        ">3 mobile hard b2-&gt;b1 at 3.000 s: outage not measured<",
    ];
    for (panel, head) in panels.iter().zip(heads) {
        assert!(panel.contains(head), "{head} in {panel}");
    }
    let flows = [">server:4000 &gt; mobile:5000, UDP<", ">server:80 &gt; other:49152, TCP<"];
    assert!(panels[0].contains(flows[0]) && panels[1].contains(flows[1]));
    assert!(panels[0].contains(">link 20 ms<") && panels[0].contains(">path switch 60 ms<"));
    let axes = [">datagram number<", ">place in stream (kB)<"];
    assert!(panels[0].contains(axes[0]) && !panels[0].contains(axes[1]));
    assert!(panels[1].contains(axes[1]) && !panels[1].contains(axes[0]));
    assert!(panels[2].contains(">no packets of this flow<"), "the first flow stopped before: {}", panels[2]);
    // The bands and the line of one host's handoff are not in the panel of the other host.
    assert!(panels[0].contains("fill=\"#0072b2\"") && !panels[1].contains("fill=\"#0072b2\""));
    assert!(panels[1].contains("fill=\"#d98880\"") && !panels[0].contains("fill=\"#d98880\""));
    assert!(panels[0].contains(">1</text>") && !panels[0].contains(">2</text>"));
}

#[test]
fn a_handoff_without_a_flow_is_not_measured() {
    let mut figure = samples::small_sequence();
    figure.handoffs[0].costs.clear();
    assert!(
        figure
            .svg()
            .contains(">Handoff 1 (hard b2-&gt;b3) is not measured, because mobile had no flow at the cut.<")
    );
}

#[test]
fn places_are_exact_in_small_requests_and_in_long_streams() {
    let cy = |places: [u64; 3]| {
        let mut figure = SequenceFigure::new("");
        let mut flow = trace("", Counts::Bytes);
        flow.marks = places
            .map(|place| Mark { at: ms(place % 1000), kind: MarkKind::Received, place, path: 0 })
            .to_vec();
        figure.flows.push(flow);
        let svg = figure.svg();
        let places = svg.lines().filter(|line| line.starts_with("<circle") && line.contains("r=\"1.36\""));
        let cy = |line: &str| line.split("cy=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        (places.map(cy).collect::<std::collections::BTreeSet<_>>().len(), svg)
    };
    let (small, svg) = cy([0, 100, 200]);
    assert!(small == 3 && svg.contains(">place in stream (bytes)<"));
    let (large, svg) = cy([100_000, 100_400, 100_900]);
    assert!(large == 3 && svg.contains(">place in stream (kB)<"));
}

#[test]
fn marks_have_the_colour_of_their_path_and_losses_are_red() {
    let mut figure = SequenceFigure::new("");
    let mut flow = trace("assoc", Counts::Chunks);
    flow.paths = vec!["to 10.0.0.1".to_owned(), "to 10.0.0.2".to_owned()];
    flow.marks =
        [MarkKind::Sent, MarkKind::Lost].map(|kind| Mark { at: ms(1), kind, place: 1, path: 1 }).to_vec();
    figure.flows.push(flow);
    let svg = figure.svg();
    assert!(svg.contains(">to 10.0.0.2<") && svg.contains("fill=\"#7a4fd0\""), "the legend has the path");
    assert_eq!(svg.matches("stroke=\"#7a4fd0\"").count(), 1, "a ring: {svg}");
    // A cross has two strokes. One cross is in the panel, and one in the legend.
    assert_eq!(svg.matches("stroke=\"#cc0000\"").count(), 4, "{svg}");
}

#[test]
fn steps_of_the_protocol_are_in_rows_below_the_panels() {
    let mut figure = samples::small_sequence();
    let step =
        |name: &str, from, to| Step { from: ms(from), to: ms(to), host: "mobile".into(), name: name.into() };
    let reading = "A part of the outage";
    assert!(!figure.svg().contains(reading), "there are no steps");
    figure.steps = vec![step("DNS UPDATE", 20, 31), step("ADD", 1, 3), step("ADD", 21, 25)];
    let svg = figure.svg();
    assert!(svg.contains(reading), "parts and steps can have the same name");
    save("steps", &svg);
    assert_sound(&svg);
    let y = |name: &str| -> Vec<f64> {
        let lines = svg.lines().filter(|line| line.contains(&format!(">{name}<")));
        lines
            .map(|line| line.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect()
    };
    let (add, update) = (y("ADD"), y("DNS UPDATE"));
    assert_eq!(
        [add.len(), update.len()],
        [2, 2],
        "a row in the overview, and one in the panel of the handoff"
    );
    assert!(
        add.iter().zip(&update).all(|(add, update)| (*update - add - 15.0).abs() < 1e-6),
        "by their start: {svg}"
    );
    assert_eq!(svg.matches(">11 ms<").count(), 2, "{svg}");
    assert!(figure.csv().contains("\nstep,,mobile,,,,,0.001000000,0.003000000,ADD\n"));
    figure.steps.iter_mut().for_each(|step| step.host = "other".into());
    assert!(!figure.svg().contains(">ADD<"), "of another host's handoffs");
}

#[test]
fn a_heading_is_never_cut() {
    let owners = [Owner::Link, Owner::Detection, Owner::Registration, Owner::Recovery, Owner::FirstByte];
    let mut figure = samples::two_hosts();
    let label = "overlap gateway-of-the-west->gateway-of-the-east-with-a-long-name";
    figure.handoffs = (1..=2).map(|n| handoff(n, 2000, label, &owners.map(|owner| (owner, 7)))).collect();
    let svg = figure.svg();
    let (_, panels) = svg.split_once(" s: outage").unwrap_or_else(|| svg.split_once(">time (s)<").unwrap());
    assert!(!panels.contains('…'), "{panels}");
    for owner in owners {
        assert_eq!(svg.matches(&format!(">{} 7.0 ms<", owner.name())).count(), 2, "{}", owner.name());
    }
}

#[test]
fn neighboring_parts_of_one_owner_are_one_part() {
    let mut figure = samples::small_sequence();
    let parts = [(Owner::Link, 5), (Owner::Recovery, 20), (Owner::Recovery, 15)];
    figure.handoffs = vec![handoff(1, 15, "hard", &parts)];
    let svg = figure.svg();
    assert!(svg.contains(">recovery 35 ms<") && !svg.contains(">recovery 20 ms<"));
    assert_eq!(figure.csv().matches(",recovery\n").count(), 2, "the numbers keep both");
}

#[test]
fn a_screen_reader_is_told_what_each_handoff_cost() {
    let svg = samples::two_hosts().svg();
    let (_, about) = svg.split_once("<desc id=\"about\">").unwrap();
    let (about, _) = about.split_once("</desc>").unwrap();
    assert!(
        about
            .contains("1 mobile hard b1-&gt;b2 at 2.000 s, server:4000 &gt; mobile:5000, UDP: outage 80 ms.")
    );
    assert!(svg.contains("aria-labelledby=\"title about\"") && svg.contains("<title id=\"title\">Two hosts"));
}

#[test]
fn the_cut_of_a_semisoft_handoff_is_marked() {
    let svg = |label| {
        let mut figure = SequenceFigure::new("");
        figure.handoffs = vec![handoff(1, 500, label, &[])];
        figure.flows.push(trace("", Counts::Datagrams));
        figure.svg()
    };
    assert!(svg("semisoft b1->b2").contains(">cut</text>") && !svg("hard b1->b2").contains(">cut</text>"));
}

#[test]
fn drawings_are_sound_and_stable() {
    let all =
        [samples::small_sequence(), samples::one_handoff(), samples::many_handoffs(), samples::two_hosts()];
    for figure in all {
        let svg = figure.svg();
        assert_sound(&svg);
        let mut shuffled = figure.clone();
        shuffled.flows.iter_mut().for_each(|flow| flow.marks.reverse());
        shuffled.handoffs.reverse();
        assert_eq!((shuffled.svg(), shuffled.csv()), (svg, figure.csv()));
    }
}

#[test]
fn foreign_text_is_escaped() {
    let svg = samples::small_sequence().svg();
    assert!(svg.contains("A small &lt;flow&gt; &amp; a handoff"));
    assert!(svg.contains("hard b2-&gt;b3"));
}

#[test]
fn nothing_to_draw_is_drawn_as_such() {
    let svg = SequenceFigure::new("").svg();
    assert_sound(&svg);
    assert!(svg.contains("no flow with data"));
    assert_eq!(SequenceFigure::new("").csv().lines().count(), 1);
}

#[test]
fn odd_numbers_do_no_harm() {
    let mut figure = SequenceFigure::new("odd");
    figure.margin = Duration::MAX;
    let odd = Handoff {
        at: Instant::NEVER,
        cut: Instant::NEVER,
        ..handoff(usize::MAX, 0, "", &[(Owner::Link, 0)])
    };
    figure.handoffs = vec![odd; 30];
    figure.handoffs[0].costs[0].flow = usize::MAX;
    figure.handoffs[1].costs[0].noticed = Noticed::Never;
    let mut flow = trace("", Counts::Bytes);
    for kind in [MarkKind::Sent, MarkKind::Lost] {
        flow.marks.push(Mark { at: Instant::NEVER, kind, place: u64::MAX, path: usize::MAX });
        flow.marks.push(Mark { at: Instant::ZERO, kind, place: 0, path: 0 });
    }
    figure.flows.push(flow);
    assert_sound(&figure.svg());
}

#[test]
fn a_long_run_with_many_flows_is_a_small_drawing() {
    let mut figure = SequenceFigure::new("long");
    let mut flow = trace("long", Counts::Datagrams);
    for place in 0..200_000 {
        flow.marks.push(Mark { at: ms(place * 10), kind: MarkKind::Sent, place, path: 0 });
    }
    figure.flows = vec![flow; 8];
    let svg = figure.svg();
    assert!(svg.len() < 1_200_000, "{}", svg.len());
    assert!(svg.contains("not drawn, but are in the CSV file: 2."));
    assert_eq!(figure.csv().lines().count(), 1_600_001);
}

#[test]
fn two_runs_are_beside_each_other_with_the_same_scales() {
    let run = |length: u64| {
        let mut figure = samples::one_handoff();
        figure.handoffs = vec![handoff(1, 4000, "hard b2->b3", &[(Owner::Link, length)])];
        // The handoff has more losses than the panel shows. The text must contain the number of all losses.
        figure.handoffs[0].costs[0].lost = (0..47).map(|i| ms(4000 + i)).collect();
        figure
    };
    let runs = vec![("simulator".to_owned(), run(100)), ("Linux".to_owned(), run(700))];
    let figure = SideBySideFigure { title: "one move".into(), runs, handoff: 1, caption: String::new() };
    let svg = figure.svg();
    save("beside", &svg);
    assert_sound(&svg);
    let panels = panels(&svg);
    assert!(panels[0].contains("outage 100 ms") && panels[1].contains("outage 700 ms"));
    for (panel, after) in panels.iter().zip(["100 ms", "700 ms"]) {
        assert!(panel.contains(">800</text>"), "both reach to the end of the longer: {panel}");
        assert!(panel.contains(&format!(">new data again, {after} after the cut<")), "{panel}");
        assert!(panel.contains(">47 packets lost<"), "{panel}");
        assert!(panel.contains(">handoff<"), "{panel}");
    }
    let csv = figure.csv();
    assert!(
        csv.starts_with("run,what,handoff,")
            && csv.lines().skip(1).any(|line| line.starts_with("Linux,handoff,1,"))
    );
    let none = SideBySideFigure { handoff: 9, ..figure };
    assert!(none.svg().contains("handoff 9 concerns no flow of this run"));
}

/// The name of an event fits into the figure, right of its left edge. A longer name is cut.
#[test]
fn names_of_events_have_room() {
    let mut figure = samples::small_sequence();
    let names = ["cut of wire internet", "cut of cell 2 for mobile"];
    let step = |name: &str| Step { from: ms(1), to: ms(3), host: "mobile".into(), name: name.into() };
    figure.steps = names.map(step).into();
    figure.steps.push(step("cut of cell 17 for a host with a long name"));
    let svg = figure.svg();
    save("events", &svg);
    assert_sound(&svg);
    for name in names {
        assert!(svg.contains(&format!(">{name}<")), "{name}");
    }
    assert!(svg.contains(">cut of cell 17") && svg.contains("…<"));
}
