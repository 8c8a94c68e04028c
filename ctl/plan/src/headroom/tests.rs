use super::*;
use holdfast_api::amount::Distance;
use holdfast_core::units::{BitRate, FrameLen, Nanos};

const CELL: CellSize = CellSize::DEFAULT;

fn given(gbit: u64, metres: u64) -> Given {
    Given { cable: Some(Distance(metres * 100)), ..Given::new(BitRate::gigabits(gbit)) }
}

fn looped(gbit: u64, ns: u64) -> Given {
    Given { t_loop: Some(Nanos(ns)), ..Given::new(BitRate::gigabits(gbit)) }
}

fn term(need: &Need, name: &str) -> Amount {
    let terms = need.terms.iter().chain(&need.beside);
    terms.clone().find(|term| term.name == name).map(|term| term.amount).unwrap_or_else(|| {
        panic!("{name} is not among {:?}", terms.map(|term| term.name).collect::<Vec<_>>())
    })
}

#[test]
fn cpu_gives_the_worked_examples() {
    let reaction = Nanos::micros(100);
    let need = |gbit, len| cpu(BitRate::gigabits(gbit), reaction, 256, FrameLen(len), CELL).need;
    assert_eq!(need(1, 1500), Cells(2_354));
    assert_eq!(need(10, 1500), Cells(2_793));
    assert_eq!(need(10, 4170), Cells(7_017));
}

#[test]
fn ac5p_gives_the_exact_terms_of_its_example() {
    let rate = BitRate::gigabits(400);
    assert_eq!(ac5p(rate, Nanos::micros(3), 4096, CELL), Cells(619));
}

/// 150 KB + 20 KB = 170 KB -> 665 cells.
#[test]
fn ac5p_gives_the_flat_terms_of_its_example() {
    let need = Formula::Ac5p.need(&looped(400, 3_000)).unwrap();
    assert_eq!(term(&need, "rate x T_loop"), Amount::Bytes(150_000));
    assert_eq!(term(&need, "frames"), Amount::Bytes(20_000));
    assert_eq!((need.bytes, need.cells), (Bytes(170_000), Cells(665)));
    let with_mtu = |mtu| Formula::Ac5p.need(&Given { mtu: Some(mtu), ..looped(400, 3_000) });
    assert_eq!(with_mtu(9_216).unwrap(), need);
    let exact = with_mtu(4_096).unwrap();
    assert_eq!(term(&exact, "2 x MTU"), Amount::Bytes(8_192));
    assert_eq!((exact.bytes, exact.cells), (Bytes(158_256), Cells(619)));
}

#[test]
fn exact_gives_the_table() {
    let need = |gbit, ns, len| exact(BitRate::gigabits(gbit), Nanos(ns), FrameLen(len), CELL).0;
    let row = |gbit, ns| [64, 1086, 4170, 9216].map(|len| need(gbit, ns, len));
    assert_eq!(row(400, 1_500), [854, 345, 323, 360]);
    assert_eq!(row(400, 3_000), [1706, 685, 629, 648]);
    assert_eq!(row(400, 5_000), [2842, 1135, 1037, 1044]);
    assert_eq!(row(100, 1_500), [215, 90, 102, 144]);
    assert_eq!(row(100, 3_000), [428, 175, 170, 216]);
    assert_eq!(row(100, 5_000), [712, 290, 272, 288]);
}

#[test]
fn exact_behind_a_reverse_frame_gives_the_table() {
    let row = |gbit, ns| {
        [64, 1086, 4170, 9216].map(|len| {
            let given = Given { reverse_frame: true, smallest: FrameLen(len), ..looped(gbit, ns) };
            let need = Formula::Exact.need(&given).unwrap();
            let without = Given { reverse_frame: false, ..given };
            let otherwise = Formula::Exact.need(&without).unwrap();
            assert_eq!(term(&otherwise, "need otherwise"), Amount::Cells(need.cells.0.into()));
            assert_eq!(term(&need, "need otherwise"), Amount::Cells(otherwise.cells.0.into()));
            need.cells.0
        })
    };
    assert_eq!(row(400, 1_500), [959, 385, 374, 396]);
    assert_eq!(row(400, 3_000), [1811, 725, 663, 684]);
    assert_eq!(row(400, 5_000), [2947, 1175, 1071, 1080]);
    assert_eq!(row(100, 1_500), [320, 135, 136, 180]);
    assert_eq!(row(100, 3_000), [533, 220, 221, 252]);
    assert_eq!(row(100, 5_000), [817, 330, 323, 324]);
}

#[test]
fn frames_that_can_exceed_headroom_are_those_of_the_table() {
    let rows = [
        (400, 1_500, 512, 270, 306),
        (400, 3_000, 768, 564, 809),
        (400, 5_000, 1408, 331, 529),
        (100, 1_500, 192, 74, 270),
        (100, 3_000, 256, 271, 532),
        (100, 5_000, 384, 303, 540),
    ];
    for (gbit, ns, headroom, at_once, behind) in rows {
        let (rate, span) = (BitRate::gigabits(gbit), Nanos(ns));
        let above = |need: &dyn Fn(FrameLen) -> Cells| {
            holds_above(need, Cells(headroom), FrameLen(9_216)).map(|frame| frame.0)
        };
        assert_eq!(above(&|frame| exact(rate, span, frame, CELL)), Some(at_once), "{gbit}G {ns}");
        let need = |frame| exact_behind_a_frame(rate, span, REVERSE_FRAME, frame, CELL);
        assert_eq!(above(&need), Some(behind), "{gbit}G {ns} behind a frame");
    }
}

/// (Gbit/s, metres, sonic at cells of 96, 144 and 192, 256 bytes, mlx5)
const TABLE: [(u64, u64, u64, u64, u64, u64); 8] = [
    (10, 40, 30_720, 46_080, 60_416, 40_232),
    (25, 40, 33_792, 50_176, 66_560, 40_232),
    (100, 5, 72_704, 108_544, 144_384, 55_852),
    (100, 40, 81_920, 121_856, 161_792, 63_452),
    (100, 300, 147_456, 220_160, 293_888, 119_652),
    (400, 5, 142_336, 212_992, 282_624, 149_152),
    (400, 40, 177_152, 265_216, 353_280, 179_552),
    (400, 300, 440_320, 659_456, 878_592, 404_352),
];

#[test]
fn sonic_and_mlx5_give_the_table_to_the_byte() {
    for (gbit, metres, cell96, cell144, cell256, mlx5) in TABLE {
        for (cell, bytes) in [(96, cell96), (144, cell144), (192, cell144), (256, cell256)] {
            let cell = CellSize::new(cell).unwrap();
            let need = Formula::Sonic.need(&Given { cell, ..given(gbit, metres) }).unwrap();
            assert_eq!(need.bytes, Bytes(bytes), "sonic {gbit}G {metres} m {cell:?}");
        }
        let need = Formula::Mlx5.need(&given(gbit, metres)).unwrap();
        assert_eq!(need.bytes, Bytes(mlx5), "mlx5 {gbit}G {metres} m");
    }
}

/// 200G, 40 m, 50 % small packets, worked out by hand:
///     cable    80 m / 1.98e8 m/s = 404.0404 ns at 25 B/ns   10,101.01
///     response 453 quanta of 64 B                           28,992
///     sum with port MTU 9,100 and 819.2                     49,012.21
/// and its half counted 4, 3, 3, 2 times for cells of 256, 192, 144, 96 B:
///     x 2.5 + 1,024 = 123,554.5 -> 121 KiB; x 2 -> 99,048.4 -> 97; x 1.5 -> 74,542.3 -> 73
#[test]
fn sonic_off_the_table() {
    let half = Given { small_share: "50%".parse().unwrap(), ..given(200, 40) };
    for (cell, kib) in [(256, 121), (192, 97), (144, 97), (96, 73)] {
        let cell = CellSize::new(cell).unwrap();
        let need = Formula::Sonic.need(&Given { cell, ..half }).unwrap();
        assert_eq!(need.bytes, Bytes(kib * 1024), "{cell:?}");
    }
    // No small packets: 49,012.21 + 1,024 = 50,036.2 -> 49 KiB.
    let none = Given { small_share: "0%".parse().unwrap(), ..half };
    assert_eq!(Formula::Sonic.need(&none).unwrap().bytes, Bytes(49 * 1024));
}

/// Lanes change SONiC's xon and profile size, not the Headroom: 2 x 18 KiB - 1 KiB = 35 KiB; with
/// 121 KiB and a port MTU of 9,100 B (8.9 KiB) it is 164.9 -> 165 KiB. 4 lanes: 18 and 139 KiB.
#[test]
fn eight_lanes_take_a_second_buffer_unit() {
    let half = Given {
        small_share: "50%".parse().unwrap(),
        pipeline_latency: Some(Bytes(18 * 1024)),
        ..given(200, 40)
    };
    for (lanes, xon, size) in [(8, 35, 165), (4, 18, 139)] {
        let need = Formula::Sonic.need(&Given { lanes, ..half }).unwrap();
        assert_eq!(need.bytes, Bytes(121 * 1024));
        assert_eq!(term(&need, "SONiC xon"), Amount::Bytes(xon * 1024));
        assert_eq!(term(&need, "SONiC size"), Amount::Bytes(size * 1024));
    }
}

/// 200G, 40 m: (301 + 86) x 200 + 24,752. 1.5 m: floor(3.24) = 3, so (301 + 3) x 40 at 25G.
#[test]
fn mlx5_off_the_table() {
    let need = |given: &Given| Formula::Mlx5.need(given).unwrap().bytes;
    assert_eq!(need(&given(200, 40)), Bytes(102_152));
    let short = Given { cable: Some(Distance(150)), mtu: Some(1_500), ..given(25, 0) };
    assert_eq!(need(&short), Bytes(304 * 40 + 4_080));
}

/// 400G, 100 m, 500 ns an end, in bit times: cable 1 us = 400,000; interfaces 1 us = 400,000;
/// response 905 x 512 = 463,360; two frames of 9216 B 2 x 73,888; PFC frame 672: 1,411,808, an
/// eighth of that in bytes.
#[test]
fn ieee_adds_bit_times() {
    let at = Given { interface_delay: Nanos(500), ..given(400, 100) };
    let need = Formula::Ieee.need(&at).unwrap();
    let expected = [
        ("cable", 400_000),
        ("interfaces", 400_000),
        ("response", 463_360),
        ("2 x frame", 2 * 73_888),
        ("PFC frame", 672),
    ];
    for (name, bits) in expected {
        assert_eq!(term(&need, name), Amount::BitTimes(bits), "{name}");
    }
    assert_eq!(need.bytes, Bytes(176_476));
    assert_eq!(need.cells, Cells(690));
}

/// A 256-byte cell costs 4x on 64-byte frames, 1.179x on 1086, 1.015x on 1514, 1.047x on 4158,
/// 1.0x on 9216.
#[test]
fn the_cost_of_whole_cells() {
    for (len, thousandths) in
        [(64, 4_000), (1086, 1_179), (1514, 1_015), (4158, 1_047), (9216, 1_000)]
    {
        let taken = u64::from(FrameLen(len).to_cells(CELL).0) * 256 * 1_000;
        let cost = (taken + u64::from(len) / 2) / u64::from(len);
        assert_eq!(cost, thousandths, "{len} B");
    }
}

#[test]
fn what_a_formula_lacks_is_named() {
    let bare = Given::new(BitRate::gigabits(400));
    for formula in Formula::ALL {
        let lacks = formula.lacks(&bare).is_some();
        assert_eq!(formula.need(&bare).is_err(), lacks, "{formula:?}");
        assert_eq!(lacks, formula != Formula::Cpu, "{formula:?}");
    }
    let odd = given(300, 40);
    let finding = Formula::Sonic.need(&odd).unwrap_err();
    assert_eq!((finding.key.as_str(), finding.value.as_deref()), ("speed", Some("300G")));
}
