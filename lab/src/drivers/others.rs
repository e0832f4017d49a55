//! Drivers of NVIDIA (Mellanox), Broadcom and Amazon.

use super::{Checked, Counters, Driver, Kernel, Xmit};

pub(super) static DRIVERS: &[Driver] = &[
    Driver {
        name: "mlx4_en",
        devices: "Mellanox ConnectX-3, 10 to 56 Gbit/s",
        native: Some(Kernel(4, 8)),
        xmit: Xmit::Never,
        frags: None,
        zero_copy: None,
        // A page less the Ethernet header, two VLAN tags, headroom and the shared info.
        native_mtu: Some(4096 - 14 - 8 - 256 - 320),
        queue_per_cpu: false,
        channels: "one transmit queue more for each receive queue",
        link_flaps: true,
        lro_off: false,
        counters: Counters {
            drops: &["rx_xdp_drop", "rx_xdp_tx_full", "rx_dropped"],
            missed: &["rx_out_of_buffer", "rx_over_errors"],
            pause: &["rx_pause", "tx_pause"],
        },
        sources: &["drivers/net/ethernet/mellanox/mlx4/en_netdev.c", "drivers/net/ethernet/mellanox/mlx4/en_rx.c"],
        checked: Checked::Source,
    },
    Driver {
        name: "mlx5_core",
        devices: "NVIDIA ConnectX-4 and newer, BlueField, 10 to 400 Gbit/s",
        native: Some(Kernel(4, 9)),
        xmit: Xmit::Always,
        frags: Some(Kernel(5, 18)),
        zero_copy: Some(Kernel(5, 3)),
        native_mtu: Some(4096 - 14 - 8 - 256 - 320),
        queue_per_cpu: true,
        channels: "one XDP transmit queue for each channel; standard statistics leave out what XDP took",
        link_flaps: true,
        lro_off: true,
        counters: Counters {
            drops: &["rx_xdp_drop", "rx_xdp_tx_full", "rx_xdp_tx_err", "tx_xdp_full", "tx_xdp_err"],
            missed: &["rx_out_of_buffer", "rx_discards_phy"],
            pause: &["rx_pause_ctrl_phy", "tx_pause_ctrl_phy", "rx_global_pause", "tx_global_pause"],
        },
        sources: &[
            "drivers/net/ethernet/mellanox/mlx5/core/en/xdp.c",
            "drivers/net/ethernet/mellanox/mlx5/core/en_main.c",
        ],
        checked: Checked::Source,
    },
    Driver {
        name: "bnxt_en",
        devices: "Broadcom NetXtreme-C and -E, 10 to 400 Gbit/s",
        native: Some(Kernel(4, 11)),
        xmit: Xmit::WithProgram,
        frags: Some(Kernel(5, 19)),
        zero_copy: None,
        // A page less the Ethernet header with a VLAN tag, headroom and the shared info.
        native_mtu: Some(4096 - 18 - 256 - 320),
        queue_per_cpu: false,
        channels: "combined channels only, and as many transmit queues more as receive queues",
        link_flaps: true,
        lro_off: true,
        counters: Counters {
            drops: &["[N]: rx_discards", "[N]: rx_drops", "rx_drop_pkts"],
            missed: &["rx_total_discard_pkts", "rx_stat_discard"],
            pause: &["rx_pause_frames", "tx_pause_frames"],
        },
        sources: &[
            "drivers/net/ethernet/broadcom/bnxt/bnxt_xdp.c",
            "drivers/net/ethernet/broadcom/bnxt/bnxt.h",
            "drivers/net/ethernet/broadcom/bnxt/bnxt.c",
        ],
        checked: Checked::Source,
    },
    Driver {
        name: "ena",
        devices: "Amazon EC2's NICs",
        native: Some(Kernel(5, 6)),
        xmit: Xmit::WithProgram,
        frags: None,
        zero_copy: None,
        // A page less the Ethernet header, FCS, a VLAN tag, headroom and the shared info.
        native_mtu: Some(4096 - 14 - 4 - 4 - 256 - 320),
        queue_per_cpu: false,
        channels: "half of the queues at most: the other half is for XDP",
        link_flaps: true,
        lro_off: false,
        counters: Counters {
            drops: &["queue_N_rx_xdp_drop", "queue_N_rx_xdp_aborted", "rx_drops"],
            missed: &["rx_overruns", "queue_N_rx_page_alloc_fail", "queue_N_rx_refil_partial"],
            pause: &[],
        },
        sources: &["drivers/net/ethernet/amazon/ena/ena_xdp.c", "drivers/net/ethernet/amazon/ena/ena_netdev.c"],
        checked: Checked::Source,
    },
];
